import assert from 'node:assert/strict'
import test from 'node:test'
import { createLeases, type Store } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'

test('list, inspect and revoke on a store that lacks them say so', async () => {
  const here = bed()
  const { list: _list, revoke: _revoke, watch: _watch, ...bare } = here.server.connect()
  const leases = createLeases(bare as Store, { environment: here.env, ttlMs: 1000 })
  await assert.rejects(leases.revoke('k'), { code: 'ERR_LEASE_UNSUPPORTED' })
  await assert.rejects(leases.list().next(), { code: 'ERR_LEASE_UNSUPPORTED' })
  // And without hints, waiting works by polling.
  const holder = await here.runUntil(here.others.acquire('k'))
  const waiting = leases.acquire('k')
  await here.advance(1000)
  await here.runUntil(holder.release())
  const began = here.env.clock.now()
  await here.runUntil(waiting)
  assert.ok(here.env.clock.now() - began <= 250)
  await here.runUntil(leases.close())
  await here.end()
})

test('not ready: waits for what the store names, then asks again; at the end of the wait it says why', async () => {
  const here = bed()
  const readyAt = 3000
  const restarted: Store = {
    ...here.store,
    traits: here.store.traits,
    acquire: async (claim, call) => {
      const retryAfterMs = readyAt - here.env.clock.now()
      return retryAfterMs > 0 ? { kind: 'not-ready', why: 'restarted', retryAfterMs } : here.store.acquire(claim, call)
    },
  }
  const leases = createLeases(restarted, { environment: here.env, ttlMs: 1000 })
  const error = await here.runUntil(
    leases.acquire('k', { waitMs: 500 }).then(
      () => assert.fail(),
      (reason) => reason,
    ),
  )
  assert.deepEqual([error.code, error.why, error.retryAfterMs], ['ERR_LEASE_NOT_READY', 'restarted', 2500])
  await assert.rejects(here.runUntil(leases.tryAcquire('k')), { code: 'ERR_LEASE_NOT_READY' })
  await here.runUntil(leases.acquire('k'))
  assert.ok(here.env.clock.now() >= 3000 && here.env.clock.now() <= 3010, `${here.env.clock.now()} ms`)
  await here.runUntil(leases.close())
  await here.end()
})

onBed('the store is down: never reached, acquire throws at once; reached before, it waits', async (here) => {
  here.store.fail('none')
  const began = here.env.clock.now()
  await assert.rejects(here.runUntil(here.leases.acquire('k')), { code: 'ERR_LEASE_UNAVAILABLE' })
  assert.equal(here.env.clock.now(), began)
  here.store.heal()
  const holder = await here.runUntil(here.others.acquire('k'))
  const waiting = settling(here.leases.acquire('k', { waitMs: 10_000 }))
  await here.advance(100)
  here.store.fail('none')
  await here.advance(5000)
  assert.equal(waiting.state, 'pending')
  here.store.heal()
  await here.runUntil(holder.release())
  await here.advance(1100)
  assert.equal(waiting.state, 'resolved')
})

test('fenceFloor: the first fence is at least that, and the next ones go on from it', async () => {
  const floor = 2n ** 61n
  const here = bed({ fenceFloor: floor })
  const first = await here.runUntil(here.leases.acquire('k'))
  const second = await here.runUntil(here.leases.acquire('j'))
  assert.ok(first.fence >= floor && second.fence > first.fence)
  await here.end()
})

test('I5: a renewal that answers with another fence is a loss: somebody may have held the key in between', async () => {
  const here = bed()
  const store: Store = { ...here.store, traits: here.store.traits }
  store.renew = async (held, call) => {
    const answer = await here.store.renew(held, call)
    return answer.kind === 'renewed' ? { ...answer, fence: answer.fence + 1n } : answer
  }
  const leases = createLeases(store, { environment: here.env, ttlMs: 1000 })
  const lease = await here.runUntil(leases.acquire('k'))
  await here.advance(400)
  assert.deepEqual([lease.held, lease.signal.reason?.reason], [false, 'taken'])
  await here.runUntil(leases.close())
  await here.end()
})

onBed(
  'after a loss that nobody cleans up, one owner-checked release is sent when a TTL store would have freed the key',
  async (here) => {
    await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
    await here.advance(999)
    assert.equal(here.store.count('release'), 0)
    await here.advance(2)
    assert.equal(here.store.count('release'), 1)
  },
)

test('close is idempotent, and the store is closed by the last Leases that uses it', async () => {
  const here = bed()
  let closed = 0
  const store: Store = { ...here.store, traits: here.store.traits, close: async () => void closed++ }
  const first = createLeases(store, { environment: here.env })
  const second = createLeases(store, { environment: here.env })
  assert.equal(first.close(), first.close())
  await here.runUntil(first.close())
  assert.equal(closed, 0)
  await here.runUntil(second[Symbol.asyncDispose]())
  assert.equal(closed, 1)
  for (const call of [
    first.acquire('k'),
    first.tryAcquire('k'),
    first.inspect('k'),
    first.revoke('k'),
    first.list().next(),
    first.run('k', () => 1),
  ]) {
    await assert.rejects(call, { code: 'ERR_LEASE_CLOSED' })
  }
  await here.end()
})

test('a manual renewal in flight when release is called is not reported as a loss', async () => {
  const here = bed()
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  here.store.delayReplies(100, 'renew')
  const renewing = settling(lease.renew())
  await here.advance(50)
  assert.equal(await here.runUntil(lease.release()), 'released')
  await here.advance(200)
  assert.ok(renewing.state !== 'pending')
  if (renewing.state === 'rejected') assert.doesNotMatch(String(renewing.error), /lost the lease|Leases was closed/)
  assert.equal(lease.signal.aborted, false)
  await here.end()
})
