import assert from 'node:assert/strict'
import { onBed } from '../support/bed.js'

onBed('B072: when the wait runs out, the work of run never runs, and the error has a type', async (here) => {
  await here.runUntil(here.others.acquire('k'))
  let ran = 0
  await assert.rejects(here.runUntil(here.leases.run('k', { waitMs: 100 }, () => ran++)), {
    name: 'AcquireTimeoutError',
  })
  await assert.rejects(here.runUntil(here.leases.run('k', { waitMs: 0 }, () => ran++)), { name: 'AcquireTimeoutError' })
  assert.equal(ran, 0)
})

onBed('B072: tryAcquire answers null, which is nothing that could be used by mistake', async (here) => {
  await here.runUntil(here.others.acquire('k'))
  const lease = await here.runUntil(here.leases.tryAcquire('k'))
  assert.equal(lease, null)
  // @ts-expect-error: the type makes the caller look first
  assert.throws(() => lease.release(), TypeError)
})
