import assert from 'node:assert/strict'
import test from 'node:test'
import { createLeases } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'

const NEVER = [123.45, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, '500', 1e21, 2 ** 53, 2 ** 31, null, {}, 5n]

onBed(
  'B012 B032: a TTL that is no whole number of milliseconds is refused at call time, and never reaches the store',
  async (here) => {
    for (const ttlMs of NEVER as readonly unknown[] as number[]) {
      const name = typeof ttlMs === 'number' ? 'RangeError' : 'TypeError'
      const expected = {
        name,
        message: /^ttlMs must be a whole number of milliseconds between 1 and 2147483647, but got /,
      }
      assert.throws(() => createLeases(here.store, { ttlMs, environment: here.env }), expected)
      await assert.rejects(here.leases.acquire('k', { ttlMs }), expected)
      await assert.rejects(here.leases.tryAcquire('k', { ttlMs }), expected)
    }
    assert.equal(here.store.count('acquire'), 0)
  },
)

onBed('B012: the same for the wait; it alone may be Infinity, and 0', async (here) => {
  await here.runUntil(here.others.acquire('k'))
  for (const waitMs of [0.5, -1, Number.NaN, '500', 1e21, 2 ** 53] as number[]) {
    await assert.rejects(here.leases.acquire('k', { waitMs }), {
      message: /^waitMs must be a whole number of milliseconds between 0 and 2147483647, or Infinity, but got /,
    })
  }
  assert.equal(here.store.count('acquire'), 0)
  assert.equal(settling(here.leases.acquire('j', { waitMs: Number.POSITIVE_INFINITY })).state, 'pending')
})

test('B019: a TTL too short to be kept alive is refused, with its reason; the shortest that is not works', async () => {
  const here = bed()
  for (let ttlMs = 1; ttlMs <= 20; ttlMs++) {
    const tiny = (() => {
      try {
        return createLeases(here.server.connect(), { ttlMs, environment: here.env })
      } catch (error) {
        return error as Error
      }
    })()
    if (tiny instanceof Error) {
      assert.equal(tiny.name, 'RangeError')
      assert.match(tiny.message, /renewEveryMs|callTimeoutMs|deadline/, `${ttlMs}: ${tiny.message}`)
      continue
    }
    const lease = await here.runUntil(tiny.acquire(`k${ttlMs}`))
    assert.ok(lease.remainingMs > 0)
    await here.advance(100)
    assert.equal(lease.held, true, `ttlMs ${ttlMs} was accepted, so it must be kept`)
    await here.runUntil(tiny.close())
    assert.equal(here.ownerOf(`k${ttlMs}`), null)
  }
  await here.end()
})

test('B019: with an answer slower than a tiny TTL, it fails soon and leaves nothing behind', async () => {
  const here = bed({ ttlMs: 20 })
  here.store.delayReplies(10)
  await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 500 })), { code: 'ERR_LEASE_UNAVAILABLE' })
  await here.advance(100)
  assert.equal(here.ownerOf('k'), null)
  await here.end()
})

test('B070: the store keeps a lease for exactly the TTL that was asked for, the lock delay beside it', async () => {
  for (const lockDelayMs of [0, 250]) {
    const here = bed({ ttlMs: 1500, lockDelayMs })
    const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
    assert.equal((await here.runUntil(here.leases.inspect('k')))?.remainingMs, 1500 + lockDelayMs)
    assert.equal(lease.ttlMs, 1500)
    assert.equal(lease.remainingMs, 1500 * 0.99 - 2)
    await here.end()
  }
})
