import assert from 'node:assert/strict'
import test from 'node:test'
import { delayReply, pass } from '../../src/faults/index.js'
import { createLeases, type Lease } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'

onBed(
  'B025: a release whose answer is late does not touch the lease that the same process took meanwhile',
  async (here) => {
    const first = await here.runUntil(here.leases.acquire('k'))
    here.store.plan((operation, nth) => (operation === 'release' && nth === 1 ? delayReply(120) : pass))
    const releasing = settling(first.release())
    const second = await here.runUntil(here.leases.acquire('k'))
    assert.equal(releasing.state, 'pending')
    await here.advance(2000)
    assert.deepEqual([releasing.value, second.held, here.ownerOf('k')], ['released', true, second.owner])
    assert.equal(await here.runUntil(second.release()), 'released')
  },
)

onBed('B025: nor does the release of one that had expired', async (here) => {
  const first = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(1001)
  const second = await here.runUntil(here.leases.acquire('k'))
  assert.equal(await here.runUntil(first.release()), 'lost')
  await here.advance(2000)
  assert.deepEqual([second.held, here.ownerOf('k')], [true, second.owner])
})

onBed('B039: the label is for people; two processes with the same one are two owners', async (here) => {
  const twin = createLeases(here.server.connect(), { label: 'we', environment: here.env })
  const lease = await here.runUntil(here.leases.acquire('k'))
  assert.equal(await here.runUntil(twin.tryAcquire('k')), null)
  const other = await here.runUntil(twin.acquire('j'))
  assert.notEqual(lease.owner, other.owner)
  await here.runUntil(twin.close())
  assert.deepEqual([lease.held, here.ownerOf('k')], [true, lease.owner])
})

onBed(
  'B073: a lease can be handed to other code and released there, or in the listener that hears of its loss',
  async (here) => {
    const queue: Lease[] = [await here.runUntil(here.leases.acquire('k'))]
    const consumer = async () => queue.shift()?.release()
    assert.equal(await here.runUntil(consumer()), 'released')

    const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
    const released = new Promise((resolve) => lease.signal.addEventListener('abort', () => resolve(lease.release())))
    assert.equal(await here.runUntil(released), 'lost')
    assert.equal(await here.runUntil(lease.release()), 'lost')
  },
)

onBed(
  'B090: losing attempts write nothing: the key of a dead holder is free after its TTL, however many ask',
  async (here) => {
    await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
    const winners: number[] = []
    const ask = async () => {
      while (here.env.clock.now() < 1100) {
        if (await here.others.tryAcquire('k')) winners.push(here.env.clock.now())
        await new Promise<void>((resolve) => here.env.clock.timer(50, resolve))
      }
    }
    await here.runUntil(Promise.all(Array.from({ length: 20 }, ask)))
    assert.deepEqual(winners, [1000])
  },
)

test('B092: sweeping expired leases away during heavy locking touches no living one', async () => {
  const here = bed()
  const living = await here.runUntil(
    Promise.all(Array.from({ length: 700 }, (_, n) => here.leases.acquire(`living ${n}`))),
  )
  for (let round = 0; round < 6; round++) {
    const dying = Array.from({ length: 700 }, (_, n) =>
      here.leases.tryAcquire(`dying ${round} ${n}`, { heartbeat: false }),
    )
    await here.runUntil(Promise.all(dying))
    await here.advance(700)
  }
  const lost = living.filter((lease) => !lease.held || here.ownerOf(lease.key) !== lease.owner)
  assert.deepEqual(
    lost.map((lease) => lease.key),
    [],
  )
  await here.end()
})

onBed('B096: acquiring is one step in the store: of a hundred who ask in the same instant one has it', async (here) => {
  for (let round = 0; round < 20; round++) {
    const asked = await here.runUntil(
      Promise.all(Array.from({ length: 100 }, (_, n) => (n % 2 ? here.leases : here.others).tryAcquire('k'))),
    )
    const got = asked.filter((lease) => lease !== null)
    assert.equal(got.length, 1)
    await here.runUntil(Promise.all(got.map((lease) => lease.release())))
  }
})

onBed('B188: the TTL of the holder decides, not that of who asks', async (here) => {
  await here.runUntil(here.leases.acquire('k', { ttlMs: 30_000, heartbeat: false }))
  const impatient = settling(here.others.acquire('k', { ttlMs: 1000 }))
  await here.advance(29_999)
  assert.equal(impatient.state, 'pending')
  await here.advance(500)
  assert.equal(impatient.state, 'resolved')
})

test('B224: the release of one who overran its TTL does not free the next holder', async () => {
  const here = bed({ ttlMs: 100 })
  const late = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(100)
  const next = await here.runUntil(here.others.acquire('k'))
  assert.equal(await here.runUntil(late.release()), 'lost')
  await here.advance(500)
  assert.deepEqual([next.held, here.ownerOf('k')], [true, next.owner])
  await here.end()
})

onBed('B226: nobody gets in while a lease is renewed, with fifty contenders', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  const contenders = Array.from({ length: 50 }, () => settling(here.others.acquire('k')))
  for (let i = 0; i < 200; i++) {
    await here.runUntil(lease.renew())
    await here.advance(7)
  }
  assert.ok(contenders.every(({ state }) => state === 'pending'))
  assert.equal(lease.held, true)
})
