import assert from 'node:assert/strict'
import { show } from './bench.js'
import type { Check } from './check.js'

export const acquireChecks: readonly Check[] = [
  {
    name: 'acquire: a free key is granted, with a fence and the TTL it will have',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      assert.equal(typeof hold.fence, 'bigint')
      assert.ok(hold.grantedTtlMs > 0, `the granted TTL is ${hold.grantedTtlMs} ms`)
      await bench.assertTaken(hold.key, 'after the grant')
      const truth = await bench.harness.truth?.(hold.key)
      if (truth?.owner !== undefined) assert.equal(truth.owner, hold.owner, 'the backend has another owner')
      if (truth?.fence !== undefined) assert.equal(truth.fence, hold.fence, 'the backend has another fence')
    },
  },
  {
    name: 'acquire: a held key is refused to everybody else, through the same client and through others',
    async run(bench) {
      const store = await bench.open()
      const { key } = await bench.hold(store, bench.key())
      for (const asker of [store, await bench.open()]) {
        const outcome = await asker.acquire(bench.claim(key), bench.call)
        assert.equal(outcome.kind, 'held')
        assert.ok(outcome.kind === 'held' && !outcome.queued, 'a claim that asks for no place in line must get none')
      }
    },
  },
  {
    name: 'acquire: a losing attempt changes nothing for the holder (B090, B188)',
    async run(bench) {
      const [store, other] = [await bench.open(), await bench.open()]
      const [watched, control] = [await bench.hold(store, bench.key()), await bench.hold(store, bench.key())]
      const steps = 4
      for (let step = 0; step < steps; step++) {
        // Whatever the loser would have liked: a long lease, a short one, a high fence.
        const longest = Math.min(bench.ttlMs * 10, bench.traits.ttlMaxMs)
        for (const ttlMs of [longest, bench.traits.ttlMinMs]) {
          const fenceFloor = bench.traits.fenceFloor ? watched.fence + 10n : 0n
          const outcome = await other.acquire(
            bench.claim(watched.key, { ttlMs, fenceFloor, label: 'loser' }),
            bench.call,
          )
          assert.equal(outcome.kind, 'held', `the holder must have its key ${step}/${steps} of a TTL after the grant`)
        }
        if (step === 1) assert.equal((await bench.renew(store, watched)).kind, 'renewed', 'the holder must go on')
        if (step === 1) assert.equal((await bench.renew(store, control)).kind, 'renewed')
        await bench.wait(bench.ttlMs / (2 * steps))
      }
      const holding = await store.inspect(watched.key, bench.call)
      assert.notEqual(holding?.label, 'loser')
      await bench.past(watched)
      // A second lease that nobody asked for shows when this one would have ended.
      if (await bench.isFree(control.key))
        await bench.assertFree(watched.key, 'when its TTL has passed, whoever asked for it')
    },
  },
  {
    name: 'acquire: asking again with the same owner is a grant whose fence has not changed',
    async run(bench) {
      const store = await bench.open()
      const claim = bench.claim(bench.key())
      const first = bench.held(claim, await store.acquire(claim, bench.call))
      const again = await store.acquire(claim, bench.call)
      assert.equal(again.kind, 'granted', `an owner's own lease must not be held against it: ${show(again)}`)
      assert.equal(again.kind === 'granted' && again.fence, first.fence, 'the answer must carry the fence of the grant')
      const renewed = await bench.renew(store, first)
      assert.equal(renewed.kind, 'renewed', 'the fence of the first answer must go on counting')
    },
  },
  {
    name: 'acquire: asking again with the same owner restores the TTL',
    async run(bench) {
      const store = await bench.open()
      const claim = bench.claim(bench.key())
      const hold = bench.held(claim, await store.acquire(claim, bench.call))
      await bench.wait(hold.grantedTtlMs * 0.6)
      bench.held(claim, await store.acquire(claim, bench.call))
      await bench.wait(hold.grantedTtlMs * 0.6)
      await bench.assertTaken(claim.key, '0.6 of a TTL after it was asked for again')
    },
  },
  {
    name: 'acquire: nobody is shown the owner token of another',
    async run(bench) {
      const store = await bench.open()
      const { key, owner } = await bench.hold(store, bench.key(), { label: 'somebody' })
      const refusal = await store.acquire(bench.claim(key), bench.call)
      const holding = await store.inspect(key, bench.call)
      for (const answer of [refusal, holding])
        assert.ok(!show(answer).includes(owner), `the owner token is in ${show(answer)}`)
      assert.equal(holding?.namespace, key.namespace)
      assert.equal(holding?.state, 'held')
      if (holding?.label !== undefined) assert.equal(holding.label, 'somebody')
    },
  },
  {
    name: 'acquire: inspect of a free key is null, and looking changes nothing',
    async run(bench) {
      const store = await bench.open()
      const key = bench.key()
      assert.equal(await store.inspect(key, bench.call), null)
      const hold = await bench.hold(store, key)
      for (let i = 0; i < 3; i++) assert.ok(await store.inspect(key, bench.call))
      assert.equal((await bench.renew(store, hold)).kind, 'renewed')
    },
  },
]
