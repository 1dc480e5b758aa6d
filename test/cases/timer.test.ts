import assert from 'node:assert/strict'
import test from 'node:test'
import { createLeases, sleep } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'
import { runChild } from '../support/child.js'

const EXITS = new URL('./children/exits.js', import.meta.url)

test('B008 B196: the work ends while a renewal is in flight: after it has settled no timer and no call is left', async () => {
  const here = bed()
  here.store.delayReplies(150, 'renew')
  await here.runUntil(here.leases.run('k', () => sleep(here.env.clock, 340)))
  assert.equal(here.store.count('renew'), 1)
  assert.deepEqual([here.env.clock.pendingTimers, here.store.open], [0, 0])
  const calls = ['acquire', 'renew', 'release'] as const
  const before = calls.map((call) => here.store.count(call))
  await here.advance(3000)
  assert.deepEqual(
    calls.map((call) => here.store.count(call)),
    before,
  )
  await here.end()
})

test('B008 B196: the same when the answer comes only after the release: it re-arms nothing', async () => {
  const here = bed()
  here.store.delayReplies(600, 'renew')
  const lease = await here.runUntil(here.leases.acquire('k'))
  await here.advance(340)
  assert.equal(await here.runUntil(lease.release()), 'released')
  assert.equal(here.store.open, 1, 'the answer must still be on its way')
  await here.advance(10_000)
  assert.deepEqual([here.store.count('renew'), here.env.clock.pendingTimers, lease.signal.aborted], [1, 0, false])
  await here.end()
})

for (const [how, stdout] of [
  ['released', 'released\n'],
  ['released during a renewal', 'done 1\n'],
  ['held to the last statement', 'held\n'],
  ['dropped', ''],
  ['waited for in vain', 'ERR_LEASE_HELD\n'],
] as const) {
  test(`B008 B083 B151 B196: a process whose lease was ${how} ends by itself`, { timeout: 20_000 }, async () => {
    const began = performance.now()
    const ended = await runChild(EXITS, [how])
    assert.deepEqual([ended.code, ended.stdout, ended.stderr], [0, stdout, ''])
    assert.ok(performance.now() - began < 10_000, 'long before the TTL of a minute')
  })
}

test('B036: much contention and short work, released without waiting: no loss is reported, nobody crashes', async () => {
  const here = bed({ ttlMs: 300 })
  const random = here.env.random.fork('work')
  here.store.plan((operation) =>
    operation === 'renew' ? { kind: 'delay-reply', ms: random.below(40) } : { kind: 'pass' },
  )
  const worker = async (n: number) => {
    for (let cycle = 0; cycle < 100; cycle++) {
      const lease = await here.leases.acquire(`k${n % 8}`)
      await sleep(here.env.clock, 90 + random.below(20))
      void lease.release()
    }
  }
  await here.runUntil(Promise.all(Array.from({ length: 32 }, (_, n) => worker(n))))
  assert.deepEqual(
    here.events.filter((event) => event.type === 'lost'),
    [],
  )
  assert.ok(here.store.count('renew') > 500, 'renewals and releases must have met')
  await here.end()
})

test('B043: after an acquire that failed nothing renews, and what it left in the store goes away', async () => {
  for (const how of ['delayReplies', 'delayRequests'] as const) {
    const here = bed()
    here.store[how](5000, 'acquire')
    await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 1000 })), { code: 'ERR_LEASE_UNAVAILABLE' })
    await here.advance(4500)
    here.store.heal()
    await here.advance(3000)
    assert.deepEqual([here.store.count('renew'), here.ownerOf('k'), here.env.clock.pendingTimers], [0, null, 0])
    await here.end()
  }
})

test('B083: a lease that is never released is renewed until maxHoldMs, where that was asked for', async () => {
  const here = bed()
  await here.runUntil(here.leases.acquire('k', { maxHoldMs: 10_000 }))
  await here.advance(9_999)
  assert.equal(here.events.filter((event) => event.type === 'lost').length, 0)
  await here.advance(2000)
  assert.deepEqual(
    here.events.flatMap((event) => (event.type === 'lost' ? [event.reason] : [])),
    ['max-hold'],
  )
  assert.deepEqual([here.ownerOf('k'), here.env.clock.pendingTimers], [null, 0])
  await here.end()
})

test('B151: the timers of a held lease do not keep a process running; a call, a wait and run do', async () => {
  const here = bed()
  const lease = await here.runUntil(here.leases.acquire('k'))
  await here.advance(1000)
  assert.ok(here.env.clock.pendingTimers > 0)
  assert.equal(here.env.clock.keptAliveBy, 0)
  const waiting = settling(here.leases.acquire('k'))
  await here.advance(100)
  assert.ok(here.env.clock.keptAliveBy > 0)
  await here.runUntil(lease.release())
  await here.advance(1000)
  assert.equal(waiting.state, 'resolved')
  assert.equal(here.env.clock.keptAliveBy, 0)
  await here.runUntil(waiting.value?.release() ?? assert.fail())
  const run = settling(here.leases.run('k', () => sleep(here.env.clock, 5000)))
  await here.advance(1000)
  assert.ok(here.env.clock.keptAliveBy > 0)
  await here.advance(5000)
  assert.equal(run.state, 'resolved')
  await here.end()
})

test('B157: closing without releasing ends the renewing and frees the key within a TTL', async () => {
  const here = bed()
  await here.runUntil(here.leases.acquire('k'))
  const leases = here.leases.close()
  const next = here.others.acquire('k')
  assert.ok(await here.runUntil(next))
  assert.ok(here.env.clock.now() <= 1000)
  await here.runUntil(leases)
  assert.equal(here.store.count('renew'), 0)
  await here.end()
})

test('B200: a lease taken at any moment after the last one was released is renewed', async () => {
  const here = bed({ ttlMs: 300 })
  const random = here.env.random.fork('pauses')
  for (let round = 0; round < 1000; round++) {
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(round % 20 === 0 ? 1500 : 310)
    assert.equal(lease.held, true, `round ${round}`)
    await here.runUntil(lease.release())
    await here.advance(random.below(50))
  }
  await here.end()
})

onBed('B200: two leases of one store are renewed each on its own', async (here) => {
  const second = createLeases(here.store, { ttlMs: 1000, environment: here.env })
  const first = await here.runUntil(here.leases.acquire('a'))
  const other = await here.runUntil(second.acquire('b'))
  await here.runUntil(first.release())
  await here.advance(5000)
  assert.equal(other.held, true)
  await here.runUntil(second.close())
})
