import assert from 'node:assert/strict'
import test from 'node:test'
import { bed, onBed, settling } from '../support/bed.js'

const CALL_MS = 166

for (const waitMs of [0, 1000]) {
  test(`B048 B100: the store goes silent; an acquire that may wait ${waitMs} ms settles within that and one call`, async () => {
    const here = bed()
    await here.runUntil(here.leases.acquire('other'))
    here.store.hang()
    const began = here.env.clock.now()
    await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs })), { code: 'ERR_LEASE_UNAVAILABLE' })
    assert.ok(here.env.clock.now() - began <= waitMs + CALL_MS, `${here.env.clock.now() - began} ms`)
    await here.end()
  })

  test(`B048: the same when it goes silent during the wait of ${waitMs} ms`, async () => {
    const here = bed()
    await here.runUntil(here.others.acquire('k'))
    const code = waitMs === 0 ? 'ERR_LEASE_HELD' : 'ERR_LEASE_UNAVAILABLE'
    const waiting = assert.rejects(here.leases.acquire('k', { waitMs }), { code })
    const began = here.env.clock.now()
    await here.advance(10)
    here.store.hang()
    await here.runUntil(waiting)
    assert.ok(here.env.clock.now() - began <= waitMs + CALL_MS, `${here.env.clock.now() - began} ms`)
    await here.end()
  })
}

onBed('B049: a wait of 0 is exactly one question, and never listens for hints', async (here) => {
  await here.runUntil(here.others.acquire('k'))
  here.store.hang('watch')
  await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 0 })), { code: 'ERR_LEASE_HELD', attempts: 1 })
  assert.equal(await here.runUntil(here.leases.tryAcquire('k')), null)
  assert.deepEqual([here.store.count('acquire'), here.store.count('watch'), here.env.clock.now()], [2, 0, 0])
})

test('B099 B118: no call waits for a store that never settles: each has a time-out of its own', async () => {
  const here = bed()
  const lease = await here.runUntil(here.leases.acquire('k'))
  here.store.hang()
  const list = async () => {
    for await (const _ of here.leases.list()) assert.fail('nothing can come')
  }
  const unavailable = (call: Promise<unknown>) => assert.rejects(call, { code: 'ERR_LEASE_UNAVAILABLE' })
  const calls = [
    here.leases.acquire('j'),
    here.leases.tryAcquire('j'),
    here.leases.inspect('k'),
    list(),
    here.leases.revoke('k', { force: true }),
    lease.renew(),
  ]
  await here.runUntil(Promise.all(calls.map(unavailable)))
  assert.ok(here.env.clock.now() <= 2 * CALL_MS, `${here.env.clock.now()} ms`)
  await here.end()
})

test('B100 B118: release of a held lease settles within two call time-outs when nobody answers', async () => {
  for (const how of ['hang', 'fail'] as const) {
    const here = bed()
    const lease = await here.runUntil(here.leases.acquire('k'))
    if (how === 'hang') here.store.hang()
    else here.store.fail('unknown')
    const began = here.env.clock.now()
    assert.equal(await here.runUntil(lease.release()), 'unknown')
    assert.ok(here.env.clock.now() - began <= 2 * CALL_MS, `${how}: ${here.env.clock.now() - began} ms`)
    await here.end()
  }
})

test('B100: with a renewal in flight too, release settles within two call time-outs', async () => {
  const here = bed()
  const lease = await here.runUntil(here.leases.acquire('k'))
  here.store.hang()
  await here.advance(334)
  assert.equal(here.store.count('renew'), 1)
  const began = here.env.clock.now()
  assert.equal(await here.runUntil(lease.release()), 'unknown')
  assert.ok(here.env.clock.now() - began <= 2 * CALL_MS, `${here.env.clock.now() - began} ms`)
  await here.end()
})

test('B118: after a call that hung, the next one works as soon as the store does', async () => {
  const here = bed()
  here.store.hang()
  await assert.rejects(here.runUntil(here.leases.tryAcquire('k')))
  here.store.heal()
  await here.advance(0)
  assert.ok(await here.runUntil(here.leases.tryAcquire('other')))
  assert.ok(
    await here.runUntil(here.leases.acquire('k', { waitMs: 2 * CALL_MS })),
    'and what arrived late was given back',
  )
  await here.end()
})

onBed('B121: signal, held and remainingMs answer at once while a heartbeat hangs', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  here.store.hang()
  await here.advance(400)
  assert.equal(here.store.open, 1)
  assert.deepEqual([lease.signal.aborted, lease.held, lease.remainingMs], [false, true, 588])
  assert.equal(settling(lease.release()).state, 'pending')
})
