import assert from 'node:assert/strict'
import test from 'node:test'
import { delayReply, loseReply, loseRequest, pass } from '../../src/faults/index.js'
import { createLeases, sleep } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'

test('B040: a client that vanishes after any of its calls leaves a key that another one gets within a TTL', async () => {
  for (const fault of [loseRequest, loseReply]) {
    for (let calls = 0; calls < 6; calls++) {
      const here = bed()
      let left = calls
      here.store.plan((operation) => (operation === 'hint' || left-- > 0 ? pass : fault))
      // It would acquire, renew, release, and acquire again.
      const vanishing = here.leases.run('k', () => sleep(here.env.clock, 400)).then(() => here.leases.acquire('k'))
      vanishing.catch(() => {})
      for (let step = 0; step < 10; step++) {
        await here.advance(100)
        if (left < 0) break
      }
      left = -1
      const cutAt = here.env.clock.now()
      await here.runUntil(here.others.acquire('k'))
      assert.ok(
        here.env.clock.now() - cutAt <= 1000 + 250,
        `${fault.kind} after ${calls} calls: ${here.env.clock.now() - cutAt} ms`,
      )
      await here.end()
    }
  }
})

for (const lossy of [false, true]) {
  const name = lossy ? 'with every second hint lost, it is found by polling' : 'it is heard at once'
  test(`B051: a release at any moment around the start of a wait: ${name}`, async () => {
    const here = bed()
    const random = here.env.random.fork('offsets')
    here.store.plan((operation, nth) => {
      if (operation === 'hint') return lossy && nth % 2 ? loseRequest : pass
      return delayReply(random.below(6))
    })
    let slowest = 0
    for (let loop = 0; loop < 1000; loop++) {
      const holder = await here.runUntil(here.others.acquire('k'))
      const waiting = here.leases.acquire('k', { waitMs: 500 })
      const releaseAt = here.env.clock.now() + random.below(21)
      here.env.clock.timer(releaseAt - here.env.clock.now(), () => void holder.release())
      const lease = await here.runUntil(waiting)
      slowest = Math.max(slowest, here.env.clock.now() - releaseAt)
      await here.runUntil(lease.release())
    }
    assert.ok(slowest <= (lossy ? 500 : 20), `${slowest} ms`)
    await here.end()
  })
}

onBed(
  'B082: the holder is dead and nobody notifies: a waiter without a limit has the key within the TTL and a poll',
  async (here) => {
    await here.runUntil(here.others.acquire('k', { heartbeat: false }))
    here.store.loseRequests('hint')
    const lease = await here.runUntil(here.leases.acquire('k'))
    assert.ok(lease.held)
    assert.ok(here.env.clock.now() >= 1000 && here.env.clock.now() <= 1250, `${here.env.clock.now()} ms`)
  },
)

onBed('B088: a waiter that is woken and loses the race waits on: ten wait, ten are served', async (here) => {
  const holder = await here.runUntil(here.others.acquire('k'))
  const served: number[] = []
  const waiter = async (n: number) => {
    const lease = await (n % 2 ? here.leases : here.others).acquire('k', { waitMs: 5000 })
    served.push(n)
    await sleep(here.env.clock, 100)
    await lease.release()
  }
  const all = Promise.all(Array.from({ length: 10 }, (_, n) => waiter(n)))
  await here.advance(100)
  await here.runUntil(holder.release())
  await here.runUntil(all)
  assert.equal(new Set(served).size, 10)
})

onBed(
  'B129: waiting for oneself ends when the wait does, with a hint; two managers of one process are two clients',
  async (here) => {
    const second = createLeases(here.store, { environment: here.env, label: 'we' })
    await here.runUntil(here.leases.acquire('k'))
    await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 100 })), {
      code: 'ERR_LEASE_HELD',
      message: /this process holds it itself/,
    })
    await assert.rejects(here.runUntil(second.acquire('k', { waitMs: 100 })), {
      code: 'ERR_LEASE_HELD',
      message: /is held by we/,
    })
    await assert.rejects(
      here.runUntil(here.others.acquire('k', { waitMs: 100 })),
      (error: Error) => !/itself/.test(error.message),
    )
    await here.runUntil(second.close())
  },
)

test('B154: a waiter whose grant ran out while its own process was stopped is not told that it holds the key', async () => {
  const here = bed()
  const server = createLeases(here.server.connect(), { ttlMs: 1000, environment: here.env })
  const holder = await here.runUntil(server.acquire('k'))
  const waiting = here.leases.acquire('k')
  await here.advance(100)
  // The answer that grants it is on its way when the process is stopped for longer than the TTL.
  here.store.delayReplies(50, 'acquire')
  await here.runUntil(holder.release())
  await here.advance(10)
  here.env.clock.pause(6000)
  const lease = await here.runUntil(waiting)
  assert.ok(lease.held && lease.remainingMs > 900, `${lease.remainingMs} ms`)
  assert.equal(here.ownerOf('k'), lease.owner)
  await here.runUntil(server.close())
  await here.end()
})

onBed(
  'B158: of fifty waiters 48 are cancelled at once; the two that are left are served, and nothing else stays',
  async (here) => {
    const holder = await here.runUntil(here.others.acquire('k'))
    const cancel = new AbortController()
    const cancelled = Array.from({ length: 48 }, () => settling(here.leases.acquire('k', { signal: cancel.signal })))
    const left = [0, 1].map(() => here.leases.acquire('k').then((lease) => lease.release()))
    await here.advance(100)
    cancel.abort()
    await here.advance(0)
    assert.ok(cancelled.every(({ state }) => state === 'rejected'))
    await here.runUntil(holder.release())
    assert.deepEqual(await here.runUntil(Promise.all(left)), ['released', 'released'])
    await here.advance(1)
    assert.deepEqual([here.ownerOf('k'), here.env.clock.pendingTimers], [null, 0])
  },
)

onBed('B168: whatever is written to the record of a lease, it never outlives its TTL', async (here) => {
  const left = async () => (await here.runUntil(here.others.inspect('k')))?.remainingMs ?? 0
  const bounded = async () => assert.ok((await left()) <= 1000, `${await left()} ms`)
  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await bounded()
  for (let i = 0; i < 5; i++) {
    await here.advance(300)
    await here.runUntil(lease.renew())
    await bounded()
  }
  await here.runUntil(here.others.revoke('k'))
  await bounded()
  await assert.rejects(here.runUntil(lease.renew()), { reason: 'revoked' })
  await here.advance(1000)
  assert.equal(await left(), 0)
})

test('B176: a try that failed in a broken moment leaves nothing that could hold the key later', async () => {
  for (const fault of [loseReply, loseRequest]) {
    const here = bed()
    const holder = await here.runUntil(here.others.acquire('k'))
    here.store.plan((operation) => (operation === 'acquire' || operation === 'release' ? fault : pass))
    await assert.rejects(here.runUntil(here.leases.tryAcquire('k')), { code: 'ERR_LEASE_UNAVAILABLE' })
    here.store.heal()
    await here.runUntil(holder.release())
    assert.ok(await here.runUntil(here.others.tryAcquire('k')))
    await here.end()
  }
})

onBed(
  'B223: waiters that gave up are gone at once: after the release the key is free in the same tick',
  async (here) => {
    const holder = await here.runUntil(here.others.acquire('k'))
    const waiters = [
      settling(here.leases.acquire('k', { waitMs: 50 })),
      settling(here.others.acquire('k', { waitMs: 50 })),
    ]
    await here.advance(60)
    assert.ok(waiters.every(({ state }) => state === 'rejected'))
    const released = holder.release()
    const [seen, lease] = await here.runUntil(Promise.all([here.leases.inspect('k'), here.leases.tryAcquire('k')]))
    assert.equal(seen, null)
    assert.ok(lease?.held)
    assert.equal(await here.runUntil(released), 'released')
  },
)
