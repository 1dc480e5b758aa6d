import assert from 'node:assert/strict'
import type { Claim, Store } from '../store.js'
import type { Bench } from './bench.js'
import type { Check } from './check.js'

const isFifo = (store: Store) => store.traits.order === 'fifo'

export const orderChecks: readonly Check[] = [
  {
    name: 'order: a store without a line leaves no place in it',
    applies: (store) => !isFifo(store),
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      const outcome = await store.acquire(bench.claim(hold.key, { queue: true }), bench.call)
      assert.ok(outcome.kind === 'held' && !outcome.queued, 'a place was promised where there is no line')
      await bench.release(store, hold)
      await bench.assertFree(hold.key, 'for whoever comes first')
    },
  },
  {
    name: 'order: those in line are served in order, and nobody passes them',
    applies: isFifo,
    async run(bench) {
      const { holder, first, second, store, release } = await line(bench)
      await release(holder)
      await bench.assertTaken(holder.key, 'while others are in line before a newcomer')
      assert.equal((await store.acquire(second, bench.call)).kind, 'held', 'the second in line passed the first')
      assert.equal((await store.acquire(first, bench.call)).kind, 'granted', 'the first in line was not served')
      await release(first)
      assert.equal((await store.acquire(second, bench.call)).kind, 'granted', 'the second in line was not served')
    },
  },
  {
    name: 'order: a release gives up the place in line',
    applies: isFifo,
    async run(bench) {
      const { holder, first, second, store, release } = await line(bench)
      await release(first)
      await release(holder)
      assert.equal(
        (await store.acquire(second, bench.call)).kind,
        'granted',
        'somebody who left the line is in the way',
      )
    },
  },
  {
    name: 'order: the place of a waiter that went away expires',
    applies: isFifo,
    async run(bench) {
      const { holder, release } = await line(bench)
      await release(holder)
      const freed = await bench.eventually(() => bench.isFree(holder.key), bench.ttlMs * 4 + bench.slackMs)
      assert.ok(freed, 'waiters that never came back block the key')
    },
  },
]

/** One holds, two are in line. */
async function line(bench: Bench) {
  const store = await bench.open()
  const holder = bench.claim(bench.key())
  bench.held(holder, await store.acquire(holder, bench.call))
  const [first, second] = [bench.claim(holder.key, { queue: true }), bench.claim(holder.key, { queue: true })]
  for (const claim of [first, second]) {
    const outcome = await store.acquire(claim, bench.call)
    assert.ok(outcome.kind === 'held' && outcome.queued, 'a claim that asks for a place in line must get one')
  }
  const release = (claim: Claim) => store.release(claim, bench.call)
  return { holder, first, second, store, release }
}
