import assert from 'node:assert/strict'
import { onBed } from '../support/bed.js'

const namesIn = async (holdings: AsyncIterable<{ readonly key: string }>) => {
  const names: string[] = []
  for await (const { key } of holdings) names.push(key)
  return names
}

onBed('B013: a string is one key; a list, an empty list and an empty string are refused', async (here) => {
  await here.runUntil(here.leases.acquire('my-key'))
  assert.deepEqual(await here.runUntil(namesIn(here.others.list())), ['my-key'])
  for (const wrong of [['a', 'a', 'b'], [], undefined, null, 5, { key: 'a' }]) {
    await assert.rejects(here.leases.acquire(wrong as never), {
      name: 'TypeError',
      message: /^key must be a string, but got /,
    })
  }
  await assert.rejects(here.leases.acquire(''), {
    name: 'RangeError',
    message: 'key must be a non-empty string, but got ""',
  })
  assert.equal(here.store.count('acquire'), 1)
})

onBed('B067: inspect reads the store, so any client sees a key that another one holds', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  await here.advance(100)
  const seen = await here.runUntil(here.others.inspect('k'))
  assert.deepEqual([seen?.label, seen?.fence, seen?.state, seen?.heldForMs], ['we', lease.fence, 'held', 100])
  assert.ok(!JSON.stringify(seen, (_, part) => String(part)).includes(lease.owner), 'and never the owner token')
  await here.runUntil(lease.release())
  assert.equal(await here.runUntil(here.others.inspect('k')), null)
})

onBed('B075: renew restores the whole TTL from now, it does not add to what is left', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(400)
  assert.equal(lease.remainingMs, 988 - 400)
  await here.runUntil(lease.renew())
  assert.equal(lease.remainingMs, 988)
  assert.equal((await here.runUntil(here.others.inspect('k')))?.remainingMs, 1000)
})

onBed('B203: leases are not re-entrant, and the error of a nested acquire says so', async (here) => {
  const nested = here.leases.run('k', () => here.leases.run('k', { waitMs: 200 }, () => assert.fail('never')))
  await assert.rejects(here.runUntil(nested), {
    code: 'ERR_LEASE_HELD',
    message: /this process holds it itself, and leases are not re-entrant/,
  })
})
