import assert from 'node:assert/strict'
import type { Store } from '../store.js'
import { type Bench, type Hold, show } from './bench.js'
import type { Check } from './check.js'

export const renewChecks: readonly Check[] = [
  {
    name: 'renew: the owner is renewed with the fence of its grant, and its TTL is restored',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      for (let i = 0; i < 2; i++) {
        await bench.wait(hold.grantedTtlMs * 0.6)
        const outcome = await bench.renew(store, hold)
        assert.equal(outcome.kind, 'renewed', `the holder must be renewed, but the answer is ${show(outcome)}`)
        assert.equal(outcome.kind === 'renewed' && outcome.fence, hold.fence)
      }
      await bench.wait(hold.grantedTtlMs * 0.6)
      await bench.assertTaken(hold.key, '0.6 of a TTL after a renewal')
    },
  },
  {
    name: 'renew: never cuts the time that was already granted',
    applies: (store, harness) => store.traits.ttlMinMs * 4 <= (harness.ttlMs ?? 400),
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      assert.equal((await bench.renew(store, hold, { ttlMs: Math.floor(bench.ttlMs / 4) })).kind, 'renewed')
      await bench.wait(hold.grantedTtlMs * 0.6)
      await bench.assertTaken(hold.key, 'for the whole of the longer TTL')
    },
  },
  {
    name: 'renew: only for its owner, whoever knows the fence',
    async run(bench) {
      const [store, other] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(store, bench.key())
      for (const asker of [store, other]) {
        const outcome = await bench.renew(asker, hold, { owner: bench.claim(hold.key).owner })
        assert.equal(outcome.kind, 'lost', 'another owner was renewed')
      }
      assert.equal((await bench.renew(store, hold)).kind, 'renewed', 'the holder must go on')
    },
  },
  {
    name: 'renew: only with the fence of the grant',
    applies: (store) => store.traits.fencing !== 'none',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      for (const fence of [hold.fence - 1n, hold.fence + 1n]) {
        const outcome = await bench.renew(store, hold, { fence })
        assert.equal(outcome.kind, 'lost', `fence ${fence} was renewed, and the grant has ${hold.fence}`)
      }
      assert.equal((await bench.renew(store, hold)).kind, 'renewed', 'the holder must go on')
    },
  },
  {
    name: 'renew: never re-creates or revives what is gone',
    async run(bench) {
      for (const [way, end] of waysToEnd(bench)) {
        const store = await bench.open()
        const hold = await bench.hold(store, bench.key())
        await end(store, hold)
        if (await store.inspect(hold.key, bench.call)) continue
        await bench.renew(store, hold)
        await bench.assertFree(hold.key, `after a renewal of what was ${way}`)
      }
    },
  },
  {
    name: 'renew: an owner whose lease is over is told so',
    async run(bench) {
      for (const [way, end] of waysToEnd(bench)) {
        const [store, other] = [await bench.open(), await bench.open()]
        const [left, taken] = [await bench.hold(store, bench.key()), await bench.hold(store, bench.key())]
        await end(store, left, taken)

        const { kind } = await other.acquire(bench.claim(taken.key), bench.call)
        if (kind === 'granted') {
          const outcome = await bench.renew(store, taken)
          assert.equal(outcome.kind, 'lost', `renewed, though ${way} and another's by now`)
        }
        // A store that re-creates it tells the truth at least; that is another check's matter.
        const gone = (await store.inspect(left.key, bench.call)) === null
        const outcome = await bench.renew(store, left)
        if (gone && (await bench.isFree(left.key)))
          assert.equal(outcome.kind, 'lost', `renewed, though ${way} and free`)
      }
      if (bench.traits.lockDelay) await keptIsOver(bench)
    },
  },
]

async function keptIsOver(bench: Bench): Promise<void> {
  const store = await bench.open()
  const hold = await bench.hold(store, bench.key())
  const keepMs = Math.ceil(bench.ttlMs / 4)
  await bench.release(store, hold, keepMs)
  const { kind } = await bench.renew(store, hold)
  if (kind === 'lost') return
  // A store that prolongs what is kept tells the truth at least; that is another check's matter.
  await bench.wait(keepMs + bench.slackMs)
  assert.ok(!(await bench.isFree(hold.key)), 'renewed, though released, kept, and free soon after')
}

/** The ways in which leases end: what is gone must stay gone for all of them. */
function waysToEnd(bench: Bench): [string, (store: Store, ...holds: [Hold, ...Hold[]]) => Promise<unknown>][] {
  return [
    ['released', async (store, ...holds) => eachOf(holds, (hold) => bench.release(store, hold))],
    [
      'taken away',
      async (store, ...holds) => eachOf(holds, ({ key }) => store.revoke?.(key, { force: true }, bench.call)),
    ],
    ['expired', (_store, hold) => bench.past(hold)],
  ]
}

async function eachOf(holds: readonly Hold[], end: (hold: Hold) => Promise<unknown> | undefined): Promise<void> {
  for (const hold of holds) await end(hold)
}
