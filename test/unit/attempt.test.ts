import assert from 'node:assert/strict'
import test from 'node:test'
import { type Attempt, attempt, Owner } from '../../src/attempt.js'
import { type AcquireOutcome, type Claim, type Store, StoreError, StoreUnsafeError } from '../../src/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import { plainClaim } from '../support/claims.js'

const KEY = { namespace: 'default', name: 'k' }
const CALL_MS = 50
const GRANTED: AcquireOutcome = { kind: 'granted', fence: 7n, ttlMs: 1000 }

const ANSWERS = {
  granted: GRANTED,
  held: { kind: 'held', queued: false },
  'not-ready': { kind: 'not-ready', why: 'restarted', retryAfterMs: 5 },
  none: new StoreError('refused', 'none'),
  unknown: new StoreError('reset', 'unknown'),
  released: new StoreError('no majority', 'released'),
  unsafe: new StoreUnsafeError('eviction'),
  foreign: new TypeError('a bug in the store'),
} as const
type Name = keyof typeof ANSWERS
/** What the store says to one question, and when; `never` where it does not. */
type Reply = readonly [Name, number] | 'never'

interface Run {
  readonly result: Attempt
  readonly sends: readonly number[]
  readonly settledAt: number
  readonly lateGrants: number
}

async function ask(replies: readonly Reply[], cancelAt = Number.NaN, budgetMs = 10_000): Promise<Run> {
  const env = virtualEnvironment(1)
  const sends: number[] = []
  const acquire = () => {
    sends.push(env.clock.now())
    const reply = replies[sends.length - 1] ?? 'never'
    return new Promise<AcquireOutcome>((resolve, reject) => {
      if (reply === 'never') return
      const answer = ANSWERS[reply[0]]
      env.clock.timer(reply[1], () => (answer instanceof Error ? reject(answer) : resolve(answer)))
    })
  }
  const owner = new Owner(KEY, env.random.id())
  const claim = plainClaim(owner.owner, { key: KEY, life: { pids: [1] } })
  const cancel = new AbortController()
  if (!Number.isNaN(cancelAt)) env.clock.timer(cancelAt, () => cancel.abort(new Error('cancelled')))
  let lateGrants = 0
  const limits = { callTimeoutMs: CALL_MS, budgetMs, signal: cancel.signal }
  const result = await env.runUntil(
    attempt({ acquire } as Partial<Store> as Store, env.clock, claim, owner, limits, () => lateGrants++),
  )
  const settledAt = env.clock.now()
  // As its caller does with an owner whose claim may stand in the store.
  if (result.kind === 'unavailable' && result.suspect) owner.retired = true
  await env.advance(1000)
  return { result, sends, settledAt, lateGrants }
}

test('a verdict to the first question is the result, with the time of its send', async () => {
  for (const name of ['granted', 'held', 'not-ready'] as const) {
    const { result, sends, settledAt } = await ask([[name, 10]])
    assert.deepEqual([result, sends, settledAt], [{ kind: 'answered', sentAt: 0, outcome: ANSWERS[name] }, [0], 10])
  }
})

test('certainly not executed: not asked again, and nothing is suspect', async () => {
  for (const name of ['none', 'unsafe'] as const) {
    const { result, sends } = await ask([[name, 10]])
    assert.deepEqual(
      [result, sends],
      [{ kind: 'unavailable', error: ANSWERS[name], suspect: false, spent: false }, [0]],
    )
  }
})

test('released while answering: the owner is spent, and there is nothing to give back', async () => {
  const { result, sends } = await ask([['released', 10]])
  assert.deepEqual(
    [result, sends],
    [{ kind: 'unavailable', error: ANSWERS.released, suspect: false, spent: true }, [0]],
  )
})

test('an error that does not say what it did counts as unknown', async () => {
  const { sends } = await ask([
    ['foreign', 10],
    ['granted', 10],
  ])
  assert.deepEqual(sends, [0, 10])
})

test('a store that throws instead of rejecting is a store that rejects', async () => {
  const env = virtualEnvironment(1)
  const store = { acquire: () => assert.fail('thrown') } as Partial<Store> as Store
  const limits = { callTimeoutMs: CALL_MS, budgetMs: 0, signal: new AbortController().signal }
  const result = await env.runUntil(attempt(store, env.clock, {} as Claim, new Owner(KEY, 'o'), limits, () => {}))
  assert.equal(result.kind, 'unavailable')
})

test('I1: a grant that answers the first question after the second was sent counts from the first', async () => {
  const { result, sends } = await ask([['granted', 80], 'never'])
  assert.deepEqual([result, sends], [{ kind: 'answered', sentAt: 0, outcome: GRANTED }, [0, 50]])
})

test('a late "held" to the first question says nothing about the second', async () => {
  const { result } = await ask([
    ['held', 60],
    ['granted', 30],
  ])
  assert.deepEqual(result, { kind: 'answered', sentAt: 50, outcome: GRANTED })
})

test('no time left: an unknown outcome is not asked about again, and is suspect', async () => {
  const { result, sends, settledAt } = await ask(['never'], Number.NaN, 30)
  assert.deepEqual([sends, settledAt], [[0], 30])
  assert.ok(result.kind === 'unavailable' && result.suspect)
})

test('cancelled before it began: the store is not asked', async () => {
  const env = virtualEnvironment(1)
  const cancel = new AbortController()
  cancel.abort('why')
  const store = { acquire: () => assert.fail('asked') } as Partial<Store> as Store
  const limits = { callTimeoutMs: CALL_MS, budgetMs: 100, signal: cancel.signal }
  const result = await env.runUntil(attempt(store, env.clock, {} as Claim, new Owner(KEY, 'o'), limits, () => {}))
  assert.ok(result.kind === 'unavailable' && result.error === 'why')
})

/** Every way in which two questions can be answered, in every order around the time-outs, cancelled at every stage. */
test('I1 I4: in all interleavings of two answers, two time-outs and a cancel', async () => {
  const times = [5, 49, 60, 120]
  const replies: Reply[] = [
    'never',
    ...(Object.keys(ANSWERS) as Name[]).flatMap((name) => times.map((ms): Reply => [name, ms])),
  ]
  let runs = 0
  for (const first of replies) {
    for (const second of replies) {
      for (const cancelAt of [Number.NaN, 3, 57, 77]) {
        const run = await ask([first, second], cancelAt)
        check([first, second], cancelAt, run)
        runs++
      }
    }
  }
  assert.equal(runs, 33 * 33 * 4)
})

function check(replies: readonly Reply[], cancelAt: number, { result, sends, settledAt, lateGrants }: Run): void {
  const what = JSON.stringify(
    { replies, cancelAt, result: { ...result, error: undefined }, sends, settledAt, lateGrants },
    (_, part) => (typeof part === 'bigint' ? String(part) : part),
  )
  assert.ok(sends.length <= 2, `asked too often: ${what}`)
  assert.ok(settledAt <= 2 * CALL_MS, `settled late: ${what}`)
  const arrivals = sends.map((sentAt, i) => {
    const reply = replies[i]
    return reply === undefined || reply === 'never' ? null : { sentAt, name: reply[0], at: sentAt + reply[1] }
  })
  if (result.kind === 'answered') {
    const source = arrivals.find((each) => each && each.sentAt === result.sentAt && each.at === settledAt)
    assert.ok(source && ANSWERS[source.name] === result.outcome, `the answer of another question: ${what}`)
    return
  }
  // A grant that came while it was listened for must not be thrown away.
  const unheard = arrivals.find((each) => each?.name === 'granted' && each.at < settledAt)
  assert.equal(unheard, undefined, `a grant was not taken: ${what}`)
  const grantsAfter = arrivals.filter((each) => each?.name === 'granted' && each.at > settledAt).length
  if (result.suspect) assert.equal(lateGrants, grantsAfter, `a grant that nobody will use was not given back: ${what}`)
  // Not suspect means that no claim can stand: every question was answered, and none by a grant or an "unknown".
  else
    assert.ok(
      arrivals.every((each) => each && each.at <= settledAt && !['granted', 'unknown', 'foreign'].includes(each.name)),
      `it is suspect: ${what}`,
    )
}
