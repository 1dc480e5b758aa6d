/** Connections that end, stay silent or lose their scripts, through every client library with its default settings. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Leases } from '../../src/index.js'
import { now, type RedisBed, redisBed, timing } from '../support/redis-bed.js'
import { acquireSoon, redisStage } from '../support/redis-stage.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const TTL_MS = 3000
const CALL_MS = 500
/** How late a timer of a busy test machine may be. */
const LATE_MS = 100
const UNAVAILABLE = { code: 'ERR_LEASE_UNAVAILABLE' }

async function behindProxy(t: TestContext, library: ClientLibrary): Promise<{ server: RedisServer; bed: RedisBed }> {
  const server = await redisServer()
  const bed = await redisBed(server, library, { ttlMs: TTL_MS })
  t.after(async () => {
    await bed.end()
    await server.end()
  })
  return { server, bed }
}

async function settlesWithin(limitMs: number, call: Promise<unknown>, what: string): Promise<void> {
  const { lateMs, error } = await timing(call, limitMs)
  assert.equal((error as { code?: string })?.code, UNAVAILABLE.code, `${what}: ${error}`)
  assert.ok(lateMs <= LATE_MS, `${what} was ${lateMs} ms late`)
}

const acquires = (leases: Leases, when: string) =>
  [0, 500].map((waitMs) =>
    settlesWithin(waitMs + CALL_MS, leases.acquire('k', { waitMs }), `${when}: acquire, wait ${waitMs} ms`),
  )

// Side by side: they mostly wait.
describe('each client library with its defaults', { ...withRedis, concurrency: 5 }, () => {
  for (const library of CLIENTS) {
    test(`B048 B100: ${library.name}: a server that is gone, or accepts and never answers: every call settles in time`, async (t) => {
      const { server, bed } = await behindProxy(t, library)
      bed.proxy.hole()
      await Promise.all(acquires(bed.leases, 'mute from the start'))
      bed.proxy.heal()
      const lease = await acquireSoon(bed.leases, 'held', { heartbeat: false })
      await server.kill()
      await Promise.all([
        ...acquires(bed.leases, 'gone since'),
        settlesWithin(CALL_MS, lease.renew(), 'renew'),
        settlesWithin(CALL_MS, bed.leases.inspect('k'), 'inspect'),
      ])
      const { lateMs, value } = await timing(lease.release(), 2 * CALL_MS)
      assert.ok(value !== 'released', value)
      assert.ok(lateMs <= LATE_MS, `release was ${lateMs} ms late`)
      await server.start()
      await acquireSoon(bed.leases, 'k')
    })

    test(`B099: ${library.name}: what was asked when the connection breaks is over at once, and asked again on the next one`, async (t) => {
      const { bed } = await behindProxy(t, library)
      const lease = await bed.leases.acquire('held')
      for (let round = 0; round < 5; round++) {
        // Neither the question nor its answer gets through.
        bed.proxy.hang()
        const acquiring = timing(bed.leases.tryAcquire('k'), CALL_MS)
        const others = [timing<unknown>(lease.renew(), 10), timing<unknown>(bed.leases.inspect('held'), 10)]
        await sleep(10)
        bed.proxy.heal()
        bed.proxy.cut()
        const { lateMs, value } = await acquiring
        assert.ok(lateMs <= 0, `acquire was ${lateMs} ms late`)
        await value?.release()
        for (const [i, { lateMs, error, value }] of (await Promise.all(others)).entries()) {
          const what = `round ${round}: ${i === 0 ? 'renew' : 'inspect'}`
          assert.equal((error as { code?: string })?.code, UNAVAILABLE.code, `${what}: ${error ?? value}`)
          assert.ok(lateMs < LATE_MS, `${what} was ${lateMs} ms late`)
        }
        assert.ok(lease.held)
        assert.equal((await bed.leases.inspect('held'))?.fence, lease.fence, 'the next one works')
      }
      const renewals = () => bed.events.filter(({ type }) => type === 'renewed').length
      const before = renewals()
      await sleep(TTL_MS / 2)
      assert.ok(lease.held && renewals() > before, 'and so do heartbeats')
    })

    test(`B103: ${library.name}: connections killed by the server, of either kind, end no process, no lease and no wait`, async (t) => {
      const stage = await redisStage(t)
      const ours = await stage.party({ library }, { ttlMs: 1000 })
      const others = await stage.party({ library }, { ttlMs: 1000 })
      const lease = await ours.leases.acquire('k')
      const waiting = others.leases.acquire('k')
      await sleep(100)
      for (let round = 0; round < 7; round++) {
        await stage.server.send('CLIENT', 'KILL', 'TYPE', 'normal')
        await stage.server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
        await sleep(150)
      }
      assert.ok(lease.held, 'longer than its TTL')
      // Both have opened their notifications again by now, and hear of it at once.
      await sleep(400)
      const began = now()
      await lease.release()
      const next = await waiting
      assert.ok(now() - began < 250, `handed over after ${now() - began} ms`)
      await next.release()

      // By the server's own time limit: nobody asks for longer than that.
      await stage.server.send('CONFIG', 'SET', 'timeout', '1')
      await sleep(2500)
      const again = await ours.leases.tryAcquire('k')
      assert.ok(again)
      assert.equal(await others.leases.tryAcquire('k'), null)
      assert.equal(await again.release(), 'released')
    })

    test(`B106: ${library.name}: the server forgets its scripts all the time: nobody notices`, async (t) => {
      const stage = await redisStage(t)
      const { leases, events } = await stage.party({ library }, { ttlMs: 4000 })
      const held = await Promise.all(Array.from({ length: 20 }, (_, n) => leases.acquire(`held ${n}`)))
      const until = now() + 1200
      const forgetting = (async () => {
        for (let flushes = 0; ; flushes++) {
          if (now() > until) return flushes
          await stage.server.send('SCRIPT', 'FLUSH')
          await sleep(2)
        }
      })()
      let cycles = 0
      while (now() < until) {
        const each = await Promise.all(Array.from({ length: 8 }, (_, n) => leases.acquire(`k ${n}`)))
        assert.deepEqual([...new Set(await Promise.all(each.map((lease) => lease.release())))], ['released'])
        cycles++
      }
      assert.ok((await forgetting) > 10 && cycles > 10, `${await forgetting} flushes, ${cycles} cycles`)
      assert.deepEqual(
        held.filter((lease) => !lease.held),
        [],
      )
      const bad = events.filter((event) => event.type === 'at-risk' || event.type === 'lost')
      assert.deepEqual(bad, [])
    })
  }
})
