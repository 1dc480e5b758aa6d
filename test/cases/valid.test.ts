import assert from 'node:assert/strict'
import test from 'node:test'
import { delayReply, pass } from '../../src/faults/index.js'
import { createLeases, type Store } from '../../src/index.js'
import { bed, onBed } from '../support/bed.js'

test('B002: a lease had after waiting counts from the question that won, not from the first one', async () => {
  const here = bed()
  here.store.plan((operation) => (operation === 'acquire' ? delayReply(40) : pass))
  const holder = await here.runUntil(here.others.acquire('k'))
  const waiting = here.leases.acquire('k')
  await here.advance(1200)
  await here.runUntil(holder.release())
  const lease = await here.runUntil(waiting)
  assert.ok(lease.remainingMs > 988 - 40 - 1 && lease.remainingMs <= 988 - 40, `${lease.remainingMs} ms`)
  await here.advance(5000)
  assert.equal(lease.held, true)
  await here.end()
})

test('B002 B058: a renewal that needs two attempts counts from the send of the one that worked', async () => {
  const here = bed()
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(300)
  here.store.fail('unknown')
  await assert.rejects(here.runUntil(lease.renew()), { code: 'ERR_LEASE_UNAVAILABLE' })
  assert.equal(lease.remainingMs, 688, 'the old deadline stands')
  here.store.delayReplies(100, 'renew')
  await here.runUntil(lease.renew())
  assert.equal(lease.remainingMs, 988 - 100)
  await here.end()
})

test('B058: an answer after the call time-out but before the deadline counts by its send time; one after it does not', async () => {
  for (const [late, held] of [
    [500, true],
    [1100, false],
  ] as const) {
    const here = bed()
    here.store.plan((operation, nth) =>
      operation === 'renew' && nth === 1 ? delayReply(late) : operation === 'renew' ? { kind: 'lose-request' } : pass,
    )
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(1000)
    assert.equal(lease.held, held, `an answer ${late} ms late`)
    if (held) assert.ok(Math.abs(lease.remainingMs - (333 + 988 - 1000)) < 1, `${lease.remainingMs} ms`)
    await here.end()
  }
})

test('B058 B071: a grant that arrives when nothing is left of it is not handed out', async () => {
  const here = bed({ ttlMs: 100, renewEveryMs: 20, callTimeoutMs: 76 })
  here.store.plan((operation, nth) =>
    operation === 'acquire' && nth === 1 ? delayReply(97) : operation === 'acquire' ? { kind: 'lose-request' } : pass,
  )
  await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 500 })), { code: 'ERR_LEASE_UNAVAILABLE' })
  await here.advance(1000)
  assert.equal(here.ownerOf('k'), null)
  await here.end()
})

onBed('B071 B110: at the deadline exactly it is not held; strictly before it, it is', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(987.9)
  assert.deepEqual([lease.held, lease.signal.aborted], [true, false])
  here.env.clock.block(0.1)
  assert.equal(here.env.clock.now(), 988)
  assert.deepEqual([lease.remainingMs, lease.held, lease.signal.aborted], [0, false, true])
})

onBed('B071: a renewal that the store refuses is unmistakable', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.others.revoke('k', { force: true })
  await assert.rejects(here.runUntil(lease.renew()), { code: 'ERR_LEASE_LOST', reason: 'missing' })
  assert.deepEqual([lease.held, lease.remainingMs], [false, 0])
})

test('B110: where a store grants less than was asked for (whole seconds), the deadline follows what it granted', async () => {
  const here = bed({ ttlMs: 1900 })
  const inSeconds: Store = {
    ...here.store,
    traits: here.store.traits,
    acquire: (claim, call) => here.store.acquire({ ...claim, ttlMs: 1000 }, call),
    renew: (held, call) => here.store.renew({ ...held, ttlMs: 1000 }, call),
  }
  await here.advance(0.9)
  const leases = createLeases(inSeconds, { ttlMs: 1900, environment: here.env })
  const lease = await here.runUntil(leases.acquire('k'))
  assert.deepEqual([lease.ttlMs, lease.remainingMs], [1000, 988])
  for (let i = 0; i < 500; i++) {
    await here.advance(7)
    const left = (await here.runUntil(here.others.inspect('k')))?.remainingMs ?? 0
    assert.ok(lease.held && lease.remainingMs < left, `we believe ${lease.remainingMs} ms, the store ${left} ms`)
  }
  await here.runUntil(leases.close())
  await here.end()
})
