/**
 * What happens while a lease is held, TTL 1 s: however it ends, its holder is told before a second has passed since
 * the last renewal that worked was sent. Each situation is also put to holders with a classic mistake (and to one
 * without), so that the check is known to see what it is there for.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import { type Clock, createLeases, type Store } from '../../src/index.js'
import { type Bed, bed, onBed } from '../support/bed.js'
import { type Holder, type Mistakes, naiveHolder } from '../support/naive-holder.js'

const TTL_MS = 1000
/** A heartbeat, and a moment. */
const HEARTBEAT_MS = 340
const KEY = 'k'

interface Situation {
  /** Set up before the key is acquired. */
  before?(bed: Bed): void
  /** 400 ms into the hold. */
  happens(bed: Bed): void | Promise<void>
  /** The loss is certain: the store says no. It must be known by the next heartbeat, not at the deadline. */
  readonly definite?: boolean
  readonly mistakes: Mistakes | { readonly clockStopsInSuspend: true }
}

const SITUATIONS: Record<string, Situation> = {
  'the store hangs': { happens: ({ store }) => store.hang(), mistakes: { noDeadlineTimer: true } },
  'the store hangs, and answers were slow before': {
    before: ({ store }) => store.delayReplies(150),
    happens: ({ store }) => store.hang(),
    mistakes: { countsFromReply: true },
  },
  'requests are lost': { happens: ({ store }) => store.loseRequests(), mistakes: { noDeadlineTimer: true } },
  'answers are lost': { happens: ({ store }) => store.loseReplies('renew'), mistakes: { noDeadlineTimer: true } },
  'the store refuses': { happens: ({ store }) => store.fail('none'), mistakes: { trustsFailures: true } },
  'the connection breaks': { happens: ({ store }) => store.fail('unknown'), mistakes: { trustsFailures: true } },
  'the event loop is blocked': { happens: ({ env }) => env.clock.block(1500), mistakes: { flag: true } },
  'the process is stopped': {
    async happens({ env }) {
      env.clock.pause(1500)
      await env.advance(1500 - 1e-6)
    },
    mistakes: { flag: true },
  },
  'the machine sleeps for an hour': {
    async happens({ env }) {
      env.clock.suspend(3_600_000)
      await env.advance(3_600_000 - 1e-6)
    },
    mistakes: { clockStopsInSuspend: true },
  },
  'the key is deleted': {
    async happens({ store, others }) {
      store.loseRequests('hint')
      await others.revoke(KEY, { force: true })
    },
    definite: true,
    mistakes: { reCreates: true },
  },
  'the key is replaced by another owner': {
    async happens({ store, others }) {
      store.loseRequests('hint')
      await others.revoke(KEY, { force: true })
      assert.ok(await others.tryAcquire(KEY))
    },
    definite: true,
    mistakes: { ignoresNo: true },
  },
}

type Hold = (store: Store, bed: Bed) => Promise<Holder>

/**
 * What is wrong with how the holder was told; empty when nothing is. `looks`: it also reads `held` all the time, as
 * careful work does; without that, timers alone must be enough.
 */
async function complaints(situation: Situation, hold: Hold, looks: boolean): Promise<string[]> {
  const here = bed()
  const { env } = here
  const found: string[] = []
  let lastSent = 0
  const store = { ...here.store, traits: here.store.traits } satisfies Store
  store.renew = async (held, call) => {
    const sentAt = env.scheduler.now
    const answer = await here.store.renew(held, call)
    if (answer.kind === 'renewed') lastSent = Math.max(lastSent, sentAt)
    return answer
  }
  const since = () => Math.round(env.scheduler.now - lastSent)
  const heldTooLong = () => looks && env.scheduler.now >= lastSent + TTL_MS && holder.held

  situation.before?.(here)
  const holder = await env.runUntil(hold(store, here))
  const aborts: number[] = []
  holder.signal.addEventListener('abort', () => aborts.push(env.scheduler.now))
  await env.advance(400 - env.scheduler.now)
  assert.ok(holder.held && !holder.signal.aborted, 'it must be held until something happens')
  const happensAt = env.scheduler.now
  await situation.happens(here)
  const canKnowAt = env.scheduler.now
  if (heldTooLong()) found.push(`held in the first tick after it could know, ${since()} ms after its last renewal`)
  for (let i = 0; i < 500; i++) {
    await env.advance(10)
    if (heldTooLong()) found.push(`held ${since()} ms after its last renewal was sent`)
  }

  const [abortedAt = Number.NaN] = aborts
  if (aborts.length !== 1) found.push(`aborted ${aborts.length} times`)
  if (abortedAt >= lastSent + TTL_MS && abortedAt > canKnowAt + 1)
    found.push(`aborted ${abortedAt - lastSent} ms after its last renewal was sent`)
  if (situation.definite && abortedAt > happensAt + HEARTBEAT_MS)
    found.push(`aborted ${abortedAt - happensAt} ms after the loss was certain`)
  here.store.heal()
  await env.runUntil(Promise.all([holder.release(), here.leases.close(), here.others.close()]))
  await env.advance(60_000)
  if (env.clock.pendingTimers > 0) found.push(`${env.clock.pendingTimers} timers are left`)
  return found
}

const ours: Hold = (store, { env }) => createLeases(store, { ttlMs: TTL_MS, environment: env }).acquire(KEY)

const naive = (mistakes: Situation['mistakes']): Hold => {
  if (!('clockStopsInSuspend' in mistakes)) return (store, { env }) => naiveHolder(store, env, KEY, mistakes)
  return (store, { env }) => {
    const clock: Clock = {
      now: () => env.host.now(),
      wall: () => env.clock.wall(),
      timer: (ms, callback) => env.clock.timer(ms, callback),
    }
    return naiveHolder(store, { ...env, clock }, KEY)
  }
}

for (const [name, situation] of Object.entries(SITUATIONS)) {
  test(`${name}: the signal aborts before a second has passed since the last renewal sent`, async () => {
    assert.deepEqual(await complaints(situation, ours, false), [])
  })
  test(`${name}: held is false from then on, in the same tick after a pause`, async () => {
    assert.deepEqual(await complaints(situation, ours, true), [])
  })
  test(`${name}: the check finds a holder with a mistake, and nothing in one without`, async () => {
    assert.deepEqual(await complaints(situation, naive({}), false), [])
    assert.deepEqual(await complaints(situation, naive({}), true), [])
    const wrong = naive(situation.mistakes)
    const found = [...(await complaints(situation, wrong, false)), ...(await complaints(situation, wrong, true))]
    assert.notDeepEqual(found, [], JSON.stringify(situation.mistakes))
  })
  onBed(`${name}: run settles and says that the lease was lost, and nothing goes on after it`, async (here) => {
    const { leases, env } = here
    situation.before?.(here)
    const running = leases.run(KEY, async (lease) => {
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
      return 'finished anyway'
    })
    const outcome = assert.rejects(running, { code: 'ERR_LEASE_LOST', result: 'finished anyway' })
    await env.advance(400)
    await situation.happens(here)
    await env.runUntil(outcome, 2000)
  })
}
