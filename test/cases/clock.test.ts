import assert from 'node:assert/strict'
import { onBed, settling } from '../support/bed.js'

for (const step of [3_600_000, -3_600_000]) {
  const way = step > 0 ? 'forward' : 'back'
  onBed(`B079: the wall clock steps an hour ${way} while held: nothing is lost, nothing prolonged`, async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
    here.env.clock.stepWall(step)
    assert.equal(lease.remainingMs, 988)
    await here.advance(987)
    assert.deepEqual([lease.held, await here.runUntil(here.others.tryAcquire('k'))], [true, null])
    await here.advance(1)
    assert.equal(lease.held, false)
    await here.advance(12)
    assert.ok(await here.runUntil(here.others.tryAcquire('k')), 'free after its TTL, not sooner or later')
  })

  onBed(
    `B152: the wall clock steps an hour ${way} during a wait: it ends when it should, and heartbeats go on`,
    async (here) => {
      const holder = await here.runUntil(here.leases.acquire('k'))
      const waiting = settling(here.others.acquire('k', { waitMs: 2000 }))
      await here.advance(500)
      here.env.clock.stepWall(step)
      await here.advance(1499)
      assert.deepEqual([waiting.state, holder.held], ['pending', true])
      await here.advance(20)
      assert.deepEqual([waiting.state, holder.held], ['rejected', true])
      assert.equal((waiting.error as { code?: string }).code, 'ERR_LEASE_HELD')
    },
  )
}

onBed('B193: a newcomer takes the key of a record that is long dead with its first question', async (here) => {
  await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(60_000)
  const asked = here.env.clock.now()
  assert.ok(await here.runUntil(here.others.acquire('k')))
  assert.equal(here.env.clock.now(), asked)
})
