import assert from 'node:assert/strict'
import test from 'node:test'
import { breakOff, delayReply, hang, pass, refuse } from '../../src/faults/index.js'
import { type AcquireOptions, createLeases, type Lease } from '../../src/index.js'
import { bed, onBed } from '../support/bed.js'

test('B010: a loop blocked past the TTL: signal, held and assertHeld say so in the same tick', async () => {
  const here = bed({ ttlMs: 300 })
  await here.runUntil(
    here.leases
      .run('k', (lease) => {
        here.env.clock.block(500)
        assert.equal(lease.signal.aborted, true)
        assert.throws(() => lease.signal.throwIfAborted(), { code: 'ERR_LEASE_LOST' })
        assert.throws(() => lease.assertHeld(), { code: 'ERR_LEASE_LOST' })
        assert.deepEqual([lease.held, lease.remainingMs], [false, 0])
      })
      .catch(() => {}),
  )
  await here.end()
})

onBed(
  'B034: stopped for three TTLs while another one takes over: lost, nothing revived, the other undisturbed',
  async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k'))
    here.env.clock.pause(3000)
    const otherEnv = here.env.machine('other host')
    const other = createLeases(here.server.connect(), { ttlMs: 1000, environment: otherEnv })
    const next = await here.runUntil(other.acquire('k'))
    assert.equal(lease.held, false)
    await here.advance(5000)
    assert.deepEqual([lease.signal.aborted, next.held, here.ownerOf('k')], [true, true, next.owner])
    assert.ok(next.fence > lease.fence)
    await here.runUntil(other.close())
  },
)

onBed('B042: after a loss, the next lease of the same key in the same process is renewed as ever', async (here) => {
  for (let round = 0; round < 3; round++) {
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(5000)
    assert.equal(lease.held, true, `round ${round}`)
    here.store.hang()
    await here.advance(2000)
    assert.equal(lease.held, false)
    here.store.heal()
  }
})

test('B045: 500 leases over a jittery store: no gap between renewals of more than half a TTL, and each latency is told', async () => {
  const here = bed({ ttlMs: 3000 })
  const jitter = here.env.random.fork('jitter')
  here.store.plan((operation) => (operation === 'renew' ? delayReply(jitter.below(400)) : pass))
  const leases = await here.runUntil(Promise.all(Array.from({ length: 500 }, (_, n) => here.leases.acquire(`k${n}`))))
  const last = new Map(leases.map((lease) => [lease.key, 0]))
  let worstGap = 0
  let latencies = 0
  for (let step = 0; step < 300; step++) {
    await here.advance(50)
    for (const event of here.events.splice(0)) {
      assert.notEqual(event.type, 'lost')
      if (event.type !== 'renewed') continue
      latencies = Math.max(latencies, event.latencyMs)
      worstGap = Math.max(worstGap, here.env.clock.now() - event.latencyMs - (last.get(event.key) ?? 0))
      last.set(event.key, here.env.clock.now() - event.latencyMs)
    }
  }
  assert.ok(worstGap <= 1500, `a gap of ${worstGap} ms`)
  assert.ok(latencies > 350 && latencies < 400, `the slowest was told as ${latencies} ms`)
  assert.ok(leases.every((lease) => lease.held))
  await here.end()
})

onBed('B046: two levels are told apart: at risk (still held), and lost with a typed reason', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  here.store.fail('none', 'renew')
  await here.advance(340)
  const risk = here.events.find((event) => event.type === 'at-risk')
  assert.ok(risk && risk.remainingMs > 600 && /renew failed/.test(String(risk.error)), String(risk?.error))
  assert.deepEqual([lease.held, lease.signal.aborted], [true, false])
  await here.advance(700)
  const lost = here.events.filter((event) => event.type === 'lost')
  assert.deepEqual(
    lost.map((event) => event.reason),
    ['expired'],
  )
  assert.equal(lease.signal.aborted, true)
})

onBed(
  'B047 B153: cut off from the store only: told before another one can get in, and a late write has the smaller fence',
  async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k'))
    let abortedAt = Number.NaN
    lease.signal.addEventListener('abort', () => {
      abortedAt = here.env.clock.now()
    })
    await here.advance(2500)
    here.store.loseRequests()
    const next = await here.runUntil(here.others.acquire('k'))
    assert.ok(abortedAt < here.env.clock.now(), `told at ${abortedAt}, the next one got in at ${here.env.clock.now()}`)
    assert.ok(next.fence > lease.fence)
  },
)

onBed('B153: fences grow although the key is deleted and made again, by force, release or expiry', async (here) => {
  let last = 0n
  for (let round = 0; round < 12; round++) {
    const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
    assert.ok(lease.fence > last)
    last = lease.fence
    if (round % 3 === 0) await here.runUntil(here.others.revoke('k', { force: true }))
    else if (round % 3 === 1) await here.runUntil(lease.release())
    else await here.advance(1001)
  }
})

test('B054: a store that cannot answer for 2 s (busy, loading, read-only) is asked again: TTL 5 s is enough', async () => {
  for (const how of ['none', 'unknown'] as const) {
    const here = bed({ ttlMs: 5000 })
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(1000)
    here.store.fail(how)
    await here.advance(2000)
    here.store.heal()
    await here.advance(20_000)
    assert.equal(lease.held, true, how)
    await here.end()
  }
})

test('B160: one renewal that fails, hangs or breaks does not end the renewing; the gap is closed soon', async () => {
  for (const fault of [refuse, breakOff(true), breakOff(false), hang]) {
    const here = bed({ ttlMs: 5000 })
    here.store.plan((operation, nth) => (operation === 'renew' && nth === 2 ? fault : pass))
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(30_000)
    assert.equal(lease.held, true, fault.kind)
    assert.ok(here.events.filter((event) => event.type === 'renewed').length >= 17, fault.kind)
    await here.end()
  }
})

test('B165: stopped for 10 s with a TTL of 5 s: lost once, and the release is quiet', async () => {
  const here = bed({ ttlMs: 5000 })
  const lease = await here.runUntil(here.leases.acquire('k'))
  let told = 0
  lease.signal.addEventListener('abort', () => told++)
  here.env.clock.pause(10_000)
  await here.advance(10_000)
  assert.deepEqual(
    [told, await here.runUntil(lease.release()), await here.runUntil(lease.release())],
    [1, 'lost', 'lost'],
  )
  assert.equal(here.events.filter((event) => event.type === 'lost').length, 1)
  await here.end()
})

test('B202: TTL 1 s, a heartbeat of 100 ms, ten minutes: nothing is lost', async () => {
  const here = bed({ renewEveryMs: 100 })
  const jitter = here.env.random.fork('jitter')
  here.store.plan(() => delayReply(jitter.below(60)))
  const lease = await here.runUntil(here.leases.acquire('k'))
  await here.advance(600_000)
  assert.equal(lease.held, true)
  const renewed = here.events.filter((event) => event.type === 'renewed').length
  assert.ok(renewed > 5_900 && renewed < 6_010, String(renewed))
  await here.end()
})

test('B205: the heartbeat works with every combination of options', async () => {
  const onOff = <T>(value: T) => [undefined, value]
  for (const lockDelayMs of onOff(500))
    for (const fenceFloor of onOff(1n << 61n))
      for (const minHoldMs of onOff(700))
        for (const maxHoldMs of onOff(60_000))
          for (const label of onOff('somebody'))
            for (const driftRatio of onOff(0)) {
              const settings = Object.entries({ lockDelayMs, fenceFloor, driftRatio }).filter(
                ([, value]) => value !== undefined,
              )
              const wishes = Object.entries({ minHoldMs, maxHoldMs, label }).filter(([, value]) => value !== undefined)
              const what = String([...settings, ...wishes])
              const here = bed(Object.fromEntries(settings))
              const lease = await here.runUntil(here.leases.acquire('k', Object.fromEntries(wishes) as AcquireOptions))
              await here.advance(3500)
              assert.equal(lease.held, true, what)
              assert.equal(here.ownerOf('k'), lease.owner, what)
              assert.equal(await here.runUntil(lease.release()), 'released', what)
              await here.end()
            }
})

onBed(
  'B206: 100 leases and one store that stalls for 2 s: the leases of the other stores are renewed in time',
  async (here) => {
    const stalled: Lease[] = []
    const healthy: Lease[] = []
    for (let n = 0; n < 50; n++) {
      stalled.push(await here.runUntil(here.leases.acquire(`stalled ${n}`)))
      healthy.push(await here.runUntil(here.others.acquire(`healthy ${n}`)))
    }
    here.store.hang()
    await here.advance(2000)
    assert.deepEqual(
      [stalled.filter((lease) => lease.held).length, healthy.filter((lease) => lease.held).length],
      [0, 50],
    )
  },
)
