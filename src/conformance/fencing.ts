import assert from 'node:assert/strict'
import type { Key, Store } from '../store.js'
import type { Bench, Hold } from './bench.js'
import type { Check } from './check.js'

const fences = (store: Store) => store.traits.fencing !== 'none'
const floors = (store: Store) => store.traits.fenceFloor
/** Far above what a few grants reach, and within what a store with a clock for a floor may cap. */
const LEAP = 1_000n

export const fencingChecks: readonly Check[] = [
  {
    name: 'fencing: every grant of a key has a greater fence than all before it',
    applies: fences,
    async run(bench) {
      const stores = [await bench.open(), await bench.open(), await bench.open()]
      const key = bench.key()
      let last = -1n
      const grew = (fence: bigint, when: string) => {
        assert.ok(fence > last, `fence ${fence} came ${when}, after ${last}`)
        last = fence
      }
      for (const store of [...stores, ...stores]) {
        const hold = await bench.hold(store, key)
        grew(hold.fence, 'after a release')
        await bench.release(store, hold)
      }
      for (let round = 0; round < 4; round++) {
        const { store, hold } = await race(bench, stores, key)
        grew(hold.fence, 'out of a race')
        await bench.release(store, hold)
      }
      if (bench.traits.fenceFloor) {
        const [store] = stores as [Store]
        const hold = await bench.hold(store, key, { fenceFloor: last + LEAP })
        grew(hold.fence, 'with a floor')
        await bench.release(store, hold)
      }
      for (const [way, end] of otherEnds(bench)) {
        const [store] = stores as [Store]
        const hold = await bench.hold(store, key)
        grew(hold.fence, 'later')
        await end(store, hold)
        const isGone = (await store.inspect(key, bench.call)) === null
        const next = isGone ? await bench.hold(store, key) : hold
        if (isGone) grew(next.fence, `after a lease that was ${way}`)
        await bench.release(store, next)
      }
    },
  },
  {
    name: 'fencing: no grant is below the floor that it was given',
    applies: floors,
    async run(bench) {
      const store = await bench.open()
      const before = await bench.hold(store, bench.key())
      const floor = before.fence + LEAP
      const { fence } = await bench.hold(store, bench.key(), { fenceFloor: floor })
      assert.ok(fence >= floor, `the fence is ${fence}, and the floor was ${floor}`)
    },
  },
  {
    name: 'fencing: a floor given on a renewal raises later grants, and not the lease itself',
    applies: floors,
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      const fenceFloor = hold.fence + LEAP
      for (const floor of [fenceFloor, 0n]) {
        const outcome = await bench.renew(store, hold, { fenceFloor: floor })
        assert.equal(outcome.kind === 'renewed' && outcome.fence, hold.fence, 'the fence of a lease never changes')
      }
      await bench.release(store, hold)
      const { fence } = await bench.hold(store, hold.key)
      assert.ok(fence > fenceFloor, `the next fence is ${fence}, and the floor was ${fenceFloor}`)
    },
  },
]

/** All ask at once; the one that was granted. */
async function race(bench: Bench, stores: readonly Store[], key: Key) {
  const attempts = stores.map(async (store) => {
    const claim = bench.claim(key)
    return { store, claim, outcome: await store.acquire(claim, bench.call) }
  })
  const winner = (await Promise.all(attempts)).find(({ outcome }) => outcome.kind === 'granted')
  assert.ok(winner, 'of several attempts on a free key none was granted')
  return { store: winner.store, hold: bench.held(winner.claim, winner.outcome) }
}

function otherEnds(bench: Bench): [string, (store: Store, hold: Hold) => Promise<unknown>][] {
  return [
    ['taken away', async (store, { key }) => store.revoke?.(key, { force: true }, bench.call)],
    ['expired', (_store, hold) => bench.past(hold)],
  ]
}
