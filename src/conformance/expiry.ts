import assert from 'node:assert/strict'
import type { Store } from '../store.js'
import type { Check } from './check.js'

/** A lease that lives as long as a session does not end by its own time. */
const ends = (store: Store) => store.traits.expiry !== 'session'
const delays = (store: Store) => store.traits.lockDelay

export const expiryChecks: readonly Check[] = [
  {
    name: 'expiry: what nobody renews ends by itself, in time',
    applies: ends,
    async run(bench) {
      const store = await bench.open()
      const { ttlMs, traits } = bench
      const half = Math.ceil(ttlMs / 2)
      const plain = await bench.hold(store, bench.key())
      const renewed = await bench.hold(store, bench.key())
      assert.equal((await bench.renew(store, renewed)).kind, 'renewed')
      const holds = [plain, renewed]
      if (traits.revoke === 'refuses-renewal') {
        const revoked = await bench.hold(store, bench.key())
        await store.revoke?.(revoked.key, { force: false }, bench.call)
        holds.push(revoked)
      }
      if (traits.lockDelay) {
        holds.push(await bench.hold(store, bench.key(), { lockDelayMs: half }))
        holds.push(await bench.hold(store, bench.key(), { minHoldMs: ttlMs + half }))
        const kept = await bench.hold(store, bench.key())
        await bench.release(store, kept, ttlMs + half)
        holds.push(kept)
      }
      const remaining = (await store.inspect(plain.key, bench.call))?.remainingMs ?? 0
      assert.ok(remaining <= plain.grantedTtlMs, `${remaining} ms are left of a TTL of ${plain.grantedTtlMs} ms`)
      await bench.wait(plain.grantedTtlMs + (traits.lockDelay ? half : 0) + bench.slackMs)
      for (const { key } of holds) {
        assert.equal(await store.inspect(key, bench.call), null, 'what has ended must not be shown as held')
        await bench.assertFree(key, 'when its time has passed')
      }
    },
  },
  {
    name: 'expiry: never before the TTL has passed',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      await bench.wait(hold.grantedTtlMs * 0.6)
      await bench.assertTaken(hold.key, '0.6 of a TTL after the grant')
      const holding = await store.inspect(hold.key, bench.call)
      assert.equal(holding?.state, 'held')
      assert.equal(holding?.fence, hold.fence)
    },
  },
  {
    name: 'expiry: the lock delay comes after the TTL, of a grant and of a renewal',
    applies: delays,
    async run(bench) {
      const store = await bench.open()
      const lockDelayMs = bench.ttlMs * 2
      const granted = await bench.hold(store, bench.key(), { lockDelayMs })
      const renewed = await bench.hold(store, bench.key(), { lockDelayMs })
      await bench.wait(granted.grantedTtlMs / 2)
      assert.equal((await bench.renew(store, renewed)).kind, 'renewed')
      await bench.wait(granted.grantedTtlMs + bench.slackMs)
      await bench.assertTaken(granted.key, 'for the TTL and the lock delay after the grant')
      await bench.wait(bench.ttlMs)
      await bench.assertTaken(renewed.key, 'for the TTL and the lock delay after the renewal')
    },
  },
  {
    name: 'expiry: a minimal hold is kept without its holder, and a renewal does not cut it',
    applies: delays,
    async run(bench) {
      const store = await bench.open()
      const minHoldMs = bench.ttlMs * 2.5
      const hold = await bench.hold(store, bench.key(), { minHoldMs })
      await bench.renew(store, hold)
      await bench.wait(bench.ttlMs * 1.5)
      await bench.assertTaken(hold.key, 'for its minimal hold')
    },
  },
  {
    name: 'expiry: closing the client that carries a session ends its leases',
    applies: (store) => store.traits.expiry === 'session',
    async run(bench) {
      const store = await bench.open()
      const { key } = await bench.hold(store, bench.key())
      await store.close()
      const freed = await bench.eventually(() => bench.isFree(key), bench.ttlMs + bench.slackMs)
      assert.ok(freed, 'the key must be free once the session is closed')
    },
  },
]
