import assert from 'node:assert/strict'
import test from 'node:test'
import { delayRequest, pass } from '../../src/faults/index.js'
import { bed } from '../support/bed.js'

for (const taken of [true, false]) {
  test(`B037: a heartbeat that arrives after expiry never takes the key again, ${taken ? 'nor when somebody had it in between' : 'free as it is'}`, async () => {
    const here = bed({ ttlMs: 200 })
    here.store.plan((operation) => (operation === 'renew' ? delayRequest(400) : pass))
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(250)
    let between = lease.fence
    if (taken) {
      const other = await here.runUntil(here.others.acquire('k'))
      between = other.fence
      assert.equal(await here.runUntil(other.release()), 'released')
    }
    assert.ok(here.store.open > 0, 'a heartbeat must still be on its way')
    await here.advance(1000)
    assert.deepEqual([lease.signal.aborted, lease.held, here.ownerOf('k')], [true, false, null])
    const next = await here.runUntil(here.leases.acquire('k'))
    assert.ok(next.fence > between && between >= lease.fence)
    await here.end()
  })
}

test('B037: a manual renewal that arrives after expiry does not either', async () => {
  const here = bed({ ttlMs: 200 })
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(100)
  here.store.delayRequests(300)
  await assert.rejects(here.runUntil(lease.renew()), { code: 'ERR_LEASE_UNAVAILABLE' })
  await here.advance(1000)
  assert.deepEqual([lease.held, here.ownerOf('k')], [false, null])
  await assert.rejects(here.runUntil(lease.renew()), { code: 'ERR_LEASE_LOST', reason: 'expired' })
  await here.end()
})
