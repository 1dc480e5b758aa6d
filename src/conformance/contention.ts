import assert from 'node:assert/strict'
import { sleep } from '../environment.js'
import { createLeases, type Leases } from '../leases.js'
import type { Key, Store } from '../store.js'
import { observedStore } from '../stores/observed.js'
import type { Bench } from './bench.js'
import type { Check } from './check.js'

const CLIENTS = 4

export const contentionChecks: readonly Check[] = [
  {
    name: 'contention: of many attempts at once exactly one is granted',
    async run(bench) {
      const stores = await openSeveral(bench)
      for (let round = 0; round < 10; round++) {
        const key = bench.key()
        assert.equal(await granted(bench, stores, key), 1, 'grants of one key at once')
      }
    },
  },
  {
    name: 'contention: at the moment of expiry at most one attempt is granted (B150)',
    async run(bench) {
      const stores = await openSeveral(bench)
      const [first] = stores as [Store]
      for (let round = 0; round < 2; round++) {
        const hold = await bench.hold(first, bench.key())
        await bench.wait(hold.grantedTtlMs - 5)
        let grants = 0
        for (let ask = 0; ask < 10; ask++) {
          grants += await granted(bench, stores, hold.key)
          await bench.wait(2)
        }
        assert.ok(grants <= 1, `${grants} claims were granted where one lease ended`)
      }
    },
  },
  {
    name: 'contention: many waiters are all served, one at a time',
    async run(bench) {
      await serve(bench, await openSeveral(bench), 24)
    },
  },
  {
    name: 'contention: many waiters are all served without any hint',
    applies: (store) => store.watch !== undefined,
    async run(bench) {
      const stores = await openSeveral(bench)
      await serve(bench, stores.map(withoutWatch), 8)
    },
  },
]

async function openSeveral(bench: Bench): Promise<Store[]> {
  return Promise.all(Array.from({ length: CLIENTS }, () => bench.open()))
}

/** Four claims through each client, all at once: how many were granted. */
async function granted(bench: Bench, stores: readonly Store[], key: Key): Promise<number> {
  const askers = [...stores, ...stores, ...stores, ...stores]
  // Long enough that no pause of a busy machine lets a second one in.
  const ttlMs = Math.min(bench.ttlMs * 20, bench.traits.ttlMaxMs)
  const outcomes = await Promise.all(askers.map((store) => store.acquire(bench.claim(key, { ttlMs }), bench.call)))
  return outcomes.filter(({ kind }) => kind === 'granted').length
}

/** The public interface over each client, with a TTL that no pause of a busy machine reaches. */
async function serve(bench: Bench, stores: readonly Store[], waiters: number): Promise<void> {
  const { environment, traits } = bench
  const { namespace, name } = bench.key()
  const ttlMs = Math.min(Math.max(bench.ttlMs, 5_000), traits.ttlMaxMs)
  const leases = stores.map((store) => createLeases(store, { namespace, ttlMs, environment }))
  let inside = 0
  let served = 0
  const work = async (): Promise<void> => {
    inside++
    assert.equal(inside, 1, 'two hold the key at once')
    await sleep(environment.clock, 1, { keepAlive: true })
    inside--
    served++
  }
  const all = Array.from({ length: waiters }, (_, i) =>
    (leases[i % leases.length] as Leases).run(name, { waitMs: 60_000 }, work),
  )
  const results = await bench.during(Promise.allSettled(all))
  await bench.during(Promise.all(leases.map((each) => each.close())))
  const failure = results.find((result) => result.status === 'rejected')
  if (failure) throw failure.reason
  assert.equal(served, waiters)
}

function withoutWatch(store: Store): Store {
  const plain = observedStore(store, () => {})
  delete plain.watch
  return plain
}
