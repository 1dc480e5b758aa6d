/** Whatever a store answers, a claim that may stand for an owner is given back when the owner is let go (I8, I11). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AcquireOutcome, createLeases, type Store, StoreError } from '../../src/index.js'
import { memoryStore } from '../../src/stores/memory.js'

const key = { namespace: 'default', name: 'k' }
const inspect = (store: Store) => store.inspect(key, { signal: new AbortController().signal })

/** A memory store, with some of its members replaced. */
function variant(change: (inner: Store) => Partial<Store>): { store: Store; inner: Store } {
  const inner = memoryStore()
  const { name, traits } = inner
  const bound = {
    acquire: inner.acquire.bind(inner),
    renew: inner.renew.bind(inner),
    release: inner.release.bind(inner),
    inspect: inner.inspect.bind(inner),
    probe: inner.probe.bind(inner),
    close: inner.close.bind(inner),
  }
  return { store: { name, traits, ...bound, ...change(inner) }, inner }
}

describe('the first question landed and its answer was lost; the second is told "not ready"', () => {
  const notReady: AcquireOutcome = { kind: 'not-ready', why: 'starting', retryAfterMs: 20 }
  for (const [ending, next] of [
    ['the wait ends', () => notReady],
    ['it is cancelled', () => notReady],
    [
      'the next question is refused',
      () => {
        throw new StoreError('refused', 'none')
      },
    ],
  ] as [string, () => AcquireOutcome][]) {
    test(`${ending}: nothing is left in the store`, async () => {
      let asked = 0
      const { store, inner } = variant((memory) => ({
        acquire: async (claim, call) => {
          asked++
          if (asked === 1) {
            await memory.acquire(claim, call)
            throw new StoreError('reply lost', 'unknown')
          }
          return asked === 2 ? notReady : next()
        },
      }))
      const leases = createLeases(store, { ttlMs: 10_000 })
      const cancel = new AbortController()
      const cancelled = ending === 'it is cancelled'
      if (cancelled) setTimeout(() => cancel.abort(new Error('cancelled')), 60)
      await assert.rejects(leases.acquire('k', { waitMs: cancelled ? 5000 : 60, signal: cancel.signal }))
      await sleep(50)
      assert.equal(await inspect(inner), null)
      await leases.close()
    })
  }
})

test('a grant that comes in the same turn as the answer that decided is given back', async () => {
  const answers: ((outcome: AcquireOutcome) => void)[] = []
  const claims: Parameters<Store['acquire']>[] = []
  const { store, inner } = variant(() => ({
    acquire: (...question) =>
      new Promise((resolve) => {
        claims.push(question)
        answers.push(resolve)
      }),
  }))
  const leases = createLeases(store, { ttlMs: 10_000, callTimeoutMs: 50 })
  const waiting = assert.rejects(leases.acquire('k', { waitMs: 60 }))
  while (claims.length < 2) await sleep(5)
  const [first] = claims
  assert.ok(first)
  const late = await inner.acquire(...first)
  answers[1]?.({ kind: 'held', queued: false })
  answers[0]?.(late)
  while (claims.length < 3 && (await inspect(inner)) !== null) await sleep(5)
  answers[2]?.({ kind: 'held', queued: false })
  await waiting
  await sleep(50)
  assert.equal(await inspect(inner), null)
  await leases.close()
})

test("a store that answers nonsense to a release does not take the place of the work's own error, nor of close", async () => {
  const { store } = variant(() => ({ release: async () => undefined as never }))
  const leases = createLeases(store, { ttlMs: 600 })
  const own = new Error('own')
  await assert.rejects(
    leases.run('k', () => {
      throw own
    }),
    own,
  )
  await leases.close()
})

test("a watch that cannot be closed does not take the place of the work's own error, and the key is freed", async () => {
  const { store, inner } = variant(() => ({
    watch: async () => ({
      close() {
        throw new Error('close failed')
      },
    }),
  }))
  const leases = createLeases(store, { ttlMs: 10_000 })
  const own = new Error('own')
  await assert.rejects(
    leases.run('k', async () => {
      await sleep(5)
      throw own
    }),
    own,
  )
  assert.equal(await inspect(inner), null)
  await leases.close()
})
