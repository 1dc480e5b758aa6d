/**
 * A proxy keeps the client's connection while the server behind it is killed and started without its data. No client
 * library can notice, and none does.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { now, ownerAt, type RedisBed, redisBed } from '../support/redis-bed.js'
import { Diary, endOfBelief } from '../support/redis-belief.js'
import { type RedisServer, type RedisServerOptions, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const TTL_MS = 2000
const [ONE = assert.fail('no client library')] = CLIENTS
const CAREFUL = { maxTtlMs: TTL_MS, trustRestart: false }

/** Kills the server and starts it without its data, behind the back of all; who is idle is sure not to have noticed. */
async function replace(server: RedisServer, beds: readonly RedisBed[], idle: readonly RedisBed[]): Promise<void> {
  for (const { proxy } of beds) proxy.keepClients()
  const before = idle.map(({ proxy }) => proxy.counts)
  await server.kill()
  await server.start({ empty: true })
  // Whoever was kept is connected again by then.
  await sleep(100)
  for (const [i, { proxy }] of idle.entries()) {
    const { connections, reconnections } = proxy.counts
    assert.equal(connections, before[i]?.connections, 'no client has noticed')
    assert.ok(reconnections >= 2, 'the connections of the store were made anew behind it')
  }
}

async function isRefused(bed: RedisBed, key: string): Promise<void> {
  await assert.rejects(bed.leases.acquire(key, { waitMs: 0 }), (error: Error & { code?: string; why?: string }) => {
    assert.equal(error.code, 'ERR_LEASE_NOT_READY', error.message)
    assert.match(error.why ?? '', /^it started [01] s ago, and it keeps no log of its writes/)
    return true
  })
}

async function playing(
  library: ClientLibrary,
  how: RedisServerOptions,
  play: (server: RedisServer, bed: (diary?: Diary) => Promise<RedisBed>, beds: readonly RedisBed[]) => Promise<void>,
): Promise<void> {
  const server = await redisServer(how)
  const beds: RedisBed[] = []
  const { password } = how
  try {
    await play(
      server,
      async (diary) => {
        const bed = await redisBed(
          server,
          { ...library, open: (options) => library.open({ ...options, ...(password !== undefined && { password }) }) },
          { ttlMs: TTL_MS, store: CAREFUL, ...(diary && { observe: diary.observe }) },
        )
        beds.push(bed)
        return bed
      },
      beds,
    )
  } finally {
    await Promise.all(beds.map((bed) => bed.end()))
    await server.end()
  }
}

/** Once the first life of the server has been watched for long enough. */
const held = (bed: RedisBed, key: string) => bed.leases.acquire(key, { heartbeat: false, waitMs: 4 * TTL_MS })

describe('a restart without data that a proxy hides', { ...withRedis, concurrency: 4 }, () => {
  for (const library of CLIENTS) {
    test(`${library.name}: the next step notices, whatever it is, and nothing is granted unseen`, () =>
      playing(library, {}, async (server, bed, beds) => {
        const [acquires, renews, releases, waits] = [await bed(), await bed(), await bed(), await bed()]
        const diary = new Diary()
        const beats = await bed(diary)
        const first = await held(acquires, 'first')
        const [second, third] = await Promise.all([held(renews, 'second'), held(releases, 'third')])
        const beating = await beats.leases.acquire('beating', { waitMs: 4 * TTL_MS })
        const taken = waits.leases.acquire('first', { waitMs: 6 * TTL_MS }).then((lease) => ({ lease, at: now() }))
        taken.catch(() => {})
        const beliefs = Promise.all([endOfBelief(first), endOfBelief(second), endOfBelief(beating)])
        await sleep(50)
        await replace(server, beds, [acquires, renews, releases])

        await isRefused(acquires, 'fourth')
        await second.renew().catch(() => {})
        await isRefused(renews, 'fourth')
        assert.equal(await third.release(), 'lost', 'it is not there to be released')
        const [ofFirst, ofSecond, ofBeating] = await beliefs
        assert.equal(ofFirst.reason, 'expired', 'nothing was asked for it')
        assert.equal(ofSecond.reason, 'missing')
        assert.equal(ofBeating.reason, 'missing')
        assert.equal(diary.count('at-risk'), 0, 'a server that was replaced is asked again at once')
        const { lease, at } = await taken
        assert.ok(at > ofFirst.lastHeldAt, `both believed for ${ofFirst.lastHeldAt - at} ms`)
        assert.ok(lease.fence > first.fence)
      }))

    test(`${library.name}: noticed too where another client has used the new life first`, () =>
      playing(library, {}, async (server, bed, beds) => {
        const [acquires, renews] = [await bed(), await bed()]
        const [first, second] = await Promise.all([held(acquires, 'first'), held(renews, 'second')])
        await replace(server, beds, beds)

        const reckless = await redisBed(server, library, { ttlMs: TTL_MS, store: { maxTtlMs: TTL_MS } })
        try {
          // All its scripts are known to the server by now.
          const given = await reckless.leases.acquire('first', { heartbeat: false })
          assert.ok(first.held, 'two believe, as trustRestart warns')
          await given.renew()
          await (await reckless.leases.acquire('second')).release()

          await isRefused(acquires, 'third')
          await assert.rejects(first.renew(), { code: 'ERR_LEASE_LOST', reason: 'taken' })
          await assert.rejects(second.renew(), { code: 'ERR_LEASE_LOST', reason: 'missing' })
          assert.equal(await ownerAt(server, 'first'), given.owner)
          assert.ok(given.held)
        } finally {
          await reckless.end()
        }
      }))

    test(`${library.name}: with a password, which the proxy does not know`, () =>
      playing(library, { password: 'secret' }, async (server, bed, beds) => {
        const diary = new Diary()
        const [acquires, beats] = [await bed(), await bed(diary)]
        await held(acquires, 'first')
        const beating = await beats.leases.acquire('beating')
        await replace(server, beds, [acquires])
        await isRefused(acquires, 'second')
        assert.equal((await endOfBelief(beating)).reason, 'missing')
      }))
  }

  test('FLUSHALL while held: lost by the next renewal, another may be granted before that, and fences grow', () =>
    playing(ONE, {}, async (server, bed) => {
      const [one, other] = [await bed(), await bed()]
      const lease = await one.leases.acquire('k', { waitMs: 4 * TTL_MS })
      await server.send('FLUSHALL')
      const next = await other.leases.acquire('k', { waitMs: 4 * TTL_MS })
      assert.ok(next.fence > lease.fence)
      assert.equal((await endOfBelief(lease)).reason, 'taken')
      await server.send('FLUSHALL')
      await assert.rejects(next.renew(), { code: 'ERR_LEASE_LOST', reason: 'missing' })
      const last = await one.leases.acquire('k', { waitMs: 0 })
      assert.ok(last.fence > next.fence)
    }))

  test('a restart while the first question to the server is under way: its age counts from the answer', () =>
    playing(ONE, {}, async (server, bed) => {
      const { proxy, leases } = await bed()
      proxy.keepClients()
      // The library's own greeting is answered after 300 ms; the question that follows arrives 1,400 ms after it was sent.
      proxy.delay({ replies: 300 })
      const tooSlow = assert.rejects(leases.acquire('k', { waitMs: 0 }), { code: 'ERR_LEASE_UNAVAILABLE' })
      await sleep(150)
      proxy.delay({ requests: 1400 })
      await sleep(1350)
      const killedAt = now()
      await server.kill()
      await server.start({ empty: true })
      await tooSlow
      await sleep(300)
      proxy.heal()
      await assert.rejects(leases.acquire('k', { waitMs: 0 }), (error: Error & { retryAfterMs?: number }) => {
        const readyAt = now() + (error.retryAfterMs ?? 0)
        assert.ok(readyAt >= killedAt + TTL_MS, `ready ${killedAt + TTL_MS - readyAt} ms too soon: ${error.message}`)
        return true
      })
    }))
})
