import assert from 'node:assert/strict'
import test from 'node:test'
import { LeaseLostError } from '../../src/index.js'
import { bed, onBed } from '../support/bed.js'

onBed(
  'B035: after a block longer than the TTL the error names the key, how long it was held and how late it was noticed',
  async (here) => {
    const holder = await here.runUntil(here.leases.acquire('k'))
    const waiter = here.others.acquire('k')
    here.env.clock.block(1500)
    assert.equal(holder.held, false)
    const lost = holder.signal.reason
    assert.ok(lost instanceof LeaseLostError)
    assert.deepEqual([lost.key, lost.fence, lost.reason], ['k', holder.fence, 'expired'])
    assert.ok(lost.heldForMs >= 988 && lost.lateByMs >= 500, lost.message)
    assert.match(lost.message, /"k".*noticed 5\d\d ms late: this process was blocked or paused/)
    assert.ok((await here.runUntil(waiter)).fence > holder.fence)
  },
)

test('B084: work in chunks of 50 ms that block the loop, back to back for five TTLs, keeps its lease', async () => {
  const here = bed({ ttlMs: 500 })
  const lease = await here.runUntil(here.leases.acquire('k'))
  for (let i = 0; i < 50; i++) {
    here.env.clock.block(50)
    await here.advance(0)
  }
  assert.equal(lease.held, true)
  assert.ok(here.events.filter((event) => event.type === 'renewed').length >= 10)
  await here.end()
})

test('B084: one chunk longer than the TTL loses it, and the loss says that the loop was blocked', async () => {
  const here = bed({ ttlMs: 500 })
  const lease = await here.runUntil(here.leases.acquire('k'))
  here.env.clock.block(600)
  assert.throws(() => lease.assertHeld(), { code: 'ERR_LEASE_LOST', message: /blocked or paused/ })
  await here.end()
})
