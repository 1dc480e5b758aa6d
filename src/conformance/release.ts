import assert from 'node:assert/strict'
import type { Store } from '../store.js'
import { type Bench, type Hold, show } from './bench.js'
import type { Check } from './check.js'

const keeps = (store: Store) => store.traits.lockDelay

export const releaseChecks: readonly Check[] = [
  {
    name: 'release: frees the key at once, and the answer says so',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      assert.equal((await bench.release(store, hold)).kind, 'released')
      await bench.assertFree(hold.key, 'after its release')
    },
  },
  {
    name: 'release: of what is not there is absent, however often it is asked (B004)',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      await bench.release(store, hold)
      for (let i = 0; i < 2; i++) assert.equal((await bench.release(store, hold)).kind, 'absent')
      const never = bench.claim(bench.key())
      assert.equal((await store.release(never, bench.call)).kind, 'absent')

      const expired = await bench.hold(store, bench.key())
      await bench.past(expired)
      const isGone = (await store.inspect(expired.key, bench.call)) === null
      if (isGone) assert.equal((await bench.release(store, expired)).kind, 'absent')
    },
  },
  {
    name: "release: never frees another's lease (B025, B224)",
    async run(bench) {
      const [store, other] = [await bench.open(), await bench.open()]
      const key = bench.key()
      const former = await bench.hold(store, key)
      await bench.release(store, former)
      const holder = await bench.hold(other, key)
      // Late: the former owner releases once more. Wrong: somebody who never held it does.
      for (const asker of [store, other]) {
        for (const owner of [former.owner, bench.claim(key).owner]) {
          const outcome = await bench.release(asker, { ...holder, owner })
          assert.equal(outcome.kind, 'absent', `somebody else's release was answered ${show(outcome)}`)
          await bench.assertTaken(key, "after somebody else's release")
        }
      }
      assert.equal((await bench.renew(other, holder)).kind, 'renewed', 'the holder must go on')
    },
  },
  {
    name: 'release: keepMs keeps the key taken that long, also when the lease was revoked',
    applies: keeps,
    async run(bench) {
      const store = await bench.open()
      const [plain, revoked] = [await bench.hold(store, bench.key()), await bench.hold(store, bench.key())]
      if (bench.traits.revoke === 'refuses-renewal') await store.revoke?.(revoked.key, { force: false }, bench.call)
      for (const hold of [plain, revoked]) await release(bench, store, hold, bench.ttlMs * 2)
      // Longer than the lease had left, and not a moment less.
      await bench.wait(bench.ttlMs * 1.5)
      for (const hold of [plain, revoked]) await bench.assertTaken(hold.key, 'while it is kept')
    },
  },
  {
    name: 'release: a kept key matches nobody, its former owner least of all',
    applies: keeps,
    async run(bench) {
      const store = await bench.open()
      const claim = bench.claim(bench.key())
      const hold = bench.held(claim, await store.acquire(claim, bench.call))
      const control = await bench.hold(store, bench.key())
      const keepMs = Math.ceil(bench.ttlMs / 2)
      await release(bench, store, hold, keepMs)
      await release(bench, store, control, keepMs)
      // Whether it is kept at all is another check's matter.
      const holding = await store.inspect(claim.key, bench.call)
      if (holding === null) return

      assert.equal(holding.state, 'kept')
      const again = await store.acquire(claim, bench.call)
      assert.equal(again.kind, 'held', 'the former owner asked again, and a kept key was given to it')
      assert.equal((await bench.release(store, hold)).kind, 'absent', 'the former owner must have nothing to release')
      const renewal = await bench.renew(store, hold)
      const { state } = (await store.inspect(claim.key, bench.call)) ?? {}
      assert.equal(state, 'kept', `a release or a renewal (${show(renewal)}) by the former owner changed a kept key`)
      await bench.wait(keepMs + bench.slackMs)
      // A second kept key, which nobody touched, shows when this one would have ended.
      if (await bench.isFree(control.key)) await bench.assertFree(claim.key, 'when it was kept long enough')
    },
  },
]

async function release(bench: Bench, store: Store, hold: Hold, keepMs: number): Promise<void> {
  const outcome = await bench.release(store, hold, keepMs)
  assert.equal(
    outcome.kind,
    'released',
    `a release that keeps the key is a release, but the answer is ${show(outcome)}`,
  )
}
