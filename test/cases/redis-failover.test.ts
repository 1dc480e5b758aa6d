/** A Redis server that forgets: by eviction, by a fail-over to a replica that lags, by a restart without data. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease, LeaseEvent } from '../../src/index.js'
import { now, ownerAt } from '../support/redis-bed.js'
import { acquireSoon, type RedisStage, redisStage } from '../support/redis-stage.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'

const KEY = 'holdfast:lease:default:k'
/** Two heartbeats of a TTL of 3 s, and a busy machine. */
const TOLD_WITHIN_MS = 2500

/** Why it was lost, as its signal says. */
async function lossOf(lease: Lease): Promise<string> {
  if (!lease.signal.aborted) {
    const began = now()
    await Promise.race([once(lease.signal, 'abort'), sleep(TOLD_WITHIN_MS)])
    assert.ok(lease.signal.aborted, `not told within ${now() - began} ms`)
  }
  return (lease.signal.reason as { reason: string }).reason
}

/** Less than it uses already: what may be evicted goes with the next write, and what is not evicted is refused. */
const fill = (server: RedisServer) => server.send('CONFIG', 'SET', 'maxmemory', 1)
const makeRoom = (server: RedisServer) => server.send('CONFIG', 'SET', 'maxmemory', 0)

const renewalsAfter = (events: readonly LeaseEvent[], lease: Lease) =>
  events
    .slice(events.findIndex((event) => event.type === 'lost'))
    .filter((e) => e.type === 'renewed' && e.fence === lease.fence)

// Each has servers of its own, and waits most of the time.
describe('a server that forgets', { ...withRedis, concurrency: 4 }, () => {
  for (const policy of ['allkeys-random', 'volatile-ttl']) {
    test(`B062: a held lease is evicted (${policy}): its holder is told at the next heartbeat, and it is never made anew`, async (t) => {
      const stage = await redisStage(t, { args: ['--maxmemory-policy', policy] })
      const refused = await stage.leases()
      await assert.rejects(refused.tryAcquire('k'), { code: 'ERR_LEASE_UNSAFE', message: /maxmemory_policy/ })
      const { leases, events } = await stage.party({ store: { allowEviction: true } })
      const lease = await leases.acquire('k')
      await fill(stage.server)
      await stage.server.send('SET', 'data', 'x').catch(() => {})
      assert.equal(await stage.server.send('EXISTS', KEY), 0)
      assert.equal(await lossOf(lease), 'missing')
      await sleep(1500)
      assert.equal(await stage.server.send('EXISTS', KEY), 0)
      assert.deepEqual(renewalsAfter(events, lease), [])
      // The counter may be gone as well. The fence grows all the same, by the clock of the server.
      await makeRoom(stage.server)
      await stage.server.send('FLUSHALL')
      const next = await leases.acquire('k')
      assert.ok(next.fence > lease.fence)
      assert.equal(await lease.release(), 'lost')
      assert.equal(await ownerAt(stage.server, 'k'), next.owner)
      await next.release()
    })
  }

  test('B062: the memory is full: an error of the store that says so, not contention; what is held goes on', async (t) => {
    const stage = await redisStage(t, { args: ['--maxmemory-policy', 'noeviction'] })
    const { leases, events } = await stage.party()
    const lease = await leases.acquire('k')
    await fill(stage.server)
    const refused = { code: 'ERR_LEASE_UNAVAILABLE', message: /its memory is full \(maxmemory\)/ }
    await assert.rejects(leases.tryAcquire('other'), refused)
    await assert.rejects(leases.acquire('other', { waitMs: 300 }), refused)
    assert.equal(await leases.tryAcquire('k'), null, 'and what is contention is still told as such')
    await lease.renew()
    await sleep(1500)
    assert.ok(lease.held)
    assert.ok(events.every(({ type }) => type !== 'at-risk'))
    assert.equal(await lease.release(), 'released')
    await makeRoom(stage.server)
    assert.equal(await (await leases.acquire('other')).release(), 'released')
  })

  /** An address that moves from one server to another, as that of a master does. Connections end when it moves. */
  async function movingAddress(
    stage: RedisStage,
    first: number,
  ): Promise<{ port: number; moveTo(port: number): void }> {
    let target = first
    const sockets = new Set<Socket>()
    const address = createServer((client) => {
      const server = connect(target, '127.0.0.1')
      for (const socket of [client, server]) {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          sockets.delete(socket)
          client.destroy()
          server.destroy()
        })
      }
      client.pipe(server).pipe(client)
    }).listen(0, '127.0.0.1')
    await once(address, 'listening')
    const cut = () => {
      for (const socket of sockets) socket.destroy()
    }
    stage.atEnd(() => {
      cut()
      address.close()
    })
    return {
      port: (address.address() as AddressInfo).port,
      moveTo(port) {
        target = port
        cut()
      },
    }
  }

  test('B109: fail-over to a replica that never saw the lease: its holder is told at the first heartbeat there; the next fence is larger', async (t) => {
    const stage = await redisStage(t, { args: ['--repl-diskless-sync-delay', '0'] })
    const replica = await redisServer({ args: ['--replicaof', '127.0.0.1', `${stage.server.port}`] })
    stage.atEnd(() => replica.end())
    const address = await movingAddress(stage, stage.server.port)
    const { leases, events } = await stage.party({ client: { port: address.port } })
    const others = await stage.leases({ client: { port: address.port } })
    // It has seen a lease, and a counter: this one is not the first.
    await (await leases.acquire('before')).release()
    const synced = async () => Number(await replica.send('EXISTS', 'holdfast:fence')) === 1
    for (let n = 0; !(await synced()); n++) {
      assert.ok(n < 200, 'the replica is in step')
      await sleep(20)
    }
    const asReplica = await stage.leases({ client: { port: replica.port } })
    await assert.rejects(asReplica.tryAcquire('k'), { code: 'ERR_LEASE_UNSAFE', message: /is a replica of/ })

    await replica.send('REPLICAOF', 'NO', 'ONE')
    const lease = await leases.acquire('k')
    assert.equal(await ownerAt(replica, 'k'), null, 'it lags')
    await stage.server.kill()
    address.moveTo(replica.port)
    const next = await acquireSoon(others, 'k')
    assert.ok(next.fence > lease.fence, `${next.fence} after ${lease.fence}`)
    assert.equal(await lossOf(lease), 'taken')
    await sleep(1500)
    assert.equal(await ownerAt(replica, 'k'), next.owner)
    assert.deepEqual(renewalsAfter(events, lease), [])
    assert.equal(await lease.release(), 'lost')
    await next.renew()
    await next.release()
  })

  test('B133: the server restarts without its data: who held before is told before or as soon as another may start, and does not go on', async (t) => {
    const stage = await redisStage(t)
    const opening = { store: { trustRestart: false, maxTtlMs: 3000 } }
    const [ours, others] = [await stage.party(opening), await stage.party(opening)]
    const lease = await ours.leases.acquire('k', { waitMs: 10_000 })
    await stage.server.kill()
    await stage.server.start({ empty: true })
    const waiting = others.leases.acquire('k', { waitMs: 10_000 })
    let startedAt = Number.POSITIVE_INFINITY
    const started = waiting.then((next) => {
      startedAt = now()
      return next
    })
    assert.equal(await lossOf(lease), 'missing')
    assert.ok(now() < startedAt, 'told before another started')
    const next = await started
    assert.equal(await lease.release(), 'lost')
    assert.equal(await ownerAt(stage.server, 'k'), next.owner)
    await next.release()
  })

  test('B162: the server stands still under 200 leases: for less than the TTL none is lost; beyond it all are told, and none is revived', async (t) => {
    const stage = await redisStage(t)
    const { leases, events } = await stage.party()
    const held = await Promise.all(Array.from({ length: 200 }, (_, n) => leases.acquire(`k ${n}`)))
    stage.server.pause()
    await sleep(1000)
    stage.server.resume()
    await sleep(1500)
    assert.equal(held.filter((lease) => lease.held).length, 200)
    stage.server.pause()
    await sleep(3500)
    assert.equal(held.filter((lease) => lease.held).length, 0)
    stage.server.resume()
    await sleep(1500)
    assert.equal(events.filter(({ type }) => type === 'lost').length, 200)
    assert.equal(held.filter((lease) => lease.held).length, 0)
    const next = await acquireSoon(leases, 'k 0')
    assert.ok(next.fence > (held[0]?.fence ?? 0n))
    await next.release()
  })
})
