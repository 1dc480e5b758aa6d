/** What stays behind on a Redis server, in its connections and in our own process. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLeases, type Store } from '../../src/index.js'
import { runChild } from '../support/child.js'
import { now, redisBed } from '../support/redis-bed.js'
import { complaints, manyKeys } from '../support/redis-memory.js'
import { acquireSoon, redisStage } from '../support/redis-stage.js'
import { type RedisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const LEAKS = new URL('./children/leaks.js', import.meta.url)
const ABANDONS = fileURLToPath(new URL('./children/redis-abandons.js', import.meta.url))

test(
  'B087 B091: 10,000 keys, each acquired and released once: the memory of the server and its keys are as before',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const keys = 10_000
    const growth = await manyKeys(stage.server, await stage.store(), keys)
    assert.deepEqual(complaints(growth, keys), [])
    assert.equal(growth.after.keys, 1, 'the counter of fences')
  },
)

test('B087: the check finds a server that remembers something of each key', withRedis, async (t) => {
  const stage = await redisStage(t)
  const store = await stage.store()
  let n = 0
  const remembers: Store = {
    ...store,
    name: store.name,
    traits: store.traits,
    acquire: (claim, call) => store.acquire(claim, call),
    renew: (held, call) => store.renew(held, call),
    inspect: (key, call) => store.inspect(key, call),
    watch: (ref, onHint, call) => store.watch?.(ref, onHint, call) as never,
    probe: (call) => store.probe(call),
    close: () => store.close(),
    async release(ref, call) {
      void stage.server.send('SETBIT', 'remembered', 800 * n++, 1).catch(() => {})
      return store.release(ref, call)
    },
  }
  const found = complaints(await manyKeys(stage.server, remembers, 3000), 3000)
  assert.ok(
    found.some((each) => /more of usedBytes/.test(each)),
    `${found}`,
  )
})

test(
  'B087 B169: Redis: cycles, keys, refusals and losses: heap, listeners, handles and files are as before',
  withRedis,
  async (t) => {
    const { server } = await redisStage(t)
    const load = { cycles: 1000, lost: 100, keys: 1000, refused: 500 }
    const ended = await runChild(LEAKS, ['redis', JSON.stringify(load), `${server.port}`], { flags: ['--expose-gc'] })
    assert.deepEqual([ended.code, ended.stderr], [0, ''])
    assert.deepEqual(JSON.parse(ended.stdout), [])
  },
)

test(
  'B091: 4,000 keys, half of them of a process that was killed: nothing but the counter stays after the TTL',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const ttlMs = 1500
    const child = spawn(process.execPath, [ABANDONS, `${stage.server.port}`, `${ttlMs}`, '2000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const killedAt = now()
    const leases = await stage.leases()
    for (let n = 0; n < 2000; n += 100)
      await Promise.all(
        Array.from({ length: 100 }, async (_, i) => {
          const lease = await leases.acquire(`released ${n + i}`)
          await lease.release()
        }),
      )
    // What has expired is free at once. Redis removes it from memory some time later, a part of it each time.
    await sleep(Math.max(0, killedAt + ttlMs - now()))
    assert.equal(await stage.server.send('EXISTS', 'holdfast:lease:default:abandoned 1'), 0)
    const size = () => stage.server.send('DBSIZE')
    while (Number(await size()) > 1 && now() < killedAt + 4 * ttlMs) await sleep(50)
    assert.equal(await size(), 1)
  },
)

/** Of all clients of the server: connections, channels that somebody listens to. */
async function crowd(server: RedisServer): Promise<{ connections: number; channels: number }> {
  const clients = `${await server.send('CLIENT', 'LIST')}`.trim().split('\n').length
  return { connections: clients, channels: ((await server.send('PUBSUB', 'CHANNELS')) as unknown[]).length }
}

for (const library of CLIENTS) {
  test(
    `B169: ${library.name}: 1,000 attempts that fail and 300 waits in vain: no connection more, few channels; none when closed`,
    withRedis,
    async (t) => {
      const stage = await redisStage(t)
      const idle = await crowd(stage.server)
      const leases = await stage.leases({ library })
      const others = await stage.leases({ library })
      const held = await Promise.all(Array.from({ length: 300 }, (_, n) => others.acquire(`k ${n}`)))
      const wait = (n: number) =>
        leases.acquire(`k ${n}`, { waitMs: 50 }).then(
          () => assert.fail('it is held'),
          (error) => assert.equal(error.code, 'ERR_LEASE_HELD'),
        )
      await wait(0)
      const before = await crowd(stage.server)
      for (let n = 0; n < 1000; n += 50)
        assert.ok(
          (await Promise.all(Array.from({ length: 50 }, () => leases.tryAcquire('k 1')))).every((l) => l === null),
        )
      await Promise.all(held.map((_, n) => wait(n)))
      await sleep(50)
      const after = await crowd(stage.server)
      assert.equal(after.connections, before.connections)
      // Those on which somebody waited last stay open for the next one who does.
      assert.ok(after.channels <= before.channels + 64, `${after.channels} channels`)
      await Promise.all(held.map((lease) => lease.release()))
      await Promise.all([leases.close(), others.close()])
      await sleep(50)
      assert.deepEqual(await crowd(stage.server), idle)
    },
  )
}

for (const how of ['silent', 'refusing'] as const) {
  test(
    `B102: an outage of 13 TTLs (${how}) with 200 leases and 200 waiters: questions, connections and heap stay bounded`,
    withRedis,
    async (t) => {
      const stage = await redisStage(t)
      const bed = await redisBed(stage.server, CLIENTS[how === 'silent' ? 1 : 4] as ClientLibrary, { ttlMs: 300 })
      stage.atEnd(() => bed.end())
      const others = await stage.leases({}, { ttlMs: 30_000 })
      const warned: string[] = []
      const onWarning = (warning: Error) => warned.push(warning.message)
      process.on('warning', onWarning)
      const signal = new AbortController().signal
      const theirs = await Promise.all(Array.from({ length: 200 }, (_, n) => others.acquire(`theirs ${n}`)))
      const ours = await Promise.all(
        Array.from({ length: 200 }, (_, n) => bed.leases.acquire(`ours ${n}`, { ttlMs: 2000 })),
      )
      const waiting = theirs.map(({ key }) => bed.leases.acquire(key, { ttlMs: 2000, signal }).catch((error) => error))
      await sleep(300)
      const before = { heap: process.memoryUsage().heapUsed, sent: bed.proxy.counts }
      if (how === 'silent') bed.proxy.hole()
      else {
        bed.proxy.refuse()
        bed.proxy.cut()
      }
      await sleep(4000)
      const { heap, sent } = { heap: process.memoryUsage().heapUsed, sent: bed.proxy.counts }
      const connections = sent.connections - before.sent.connections
      // Another one every 400 ms for questions, and for notifications; where it is refused, at once after a pause.
      assert.ok(connections < { silent: 40, refusing: 270 }[how], `${connections} connections`)
      assert.ok(heap - before.heap < 60e6, `${heap - before.heap} bytes of heap`)
      assert.ok(sent.lostRequestBytes < 5e6, `${sent.lostRequestBytes} bytes were sent in vain`)
      bed.proxy.heal()
      const lease = await acquireSoon(bed.leases, 'new', { ttlMs: 2000 })
      await lease.release()
      await Promise.all([...ours, ...theirs].map((each) => each.release()))
      for (const each of await Promise.all(waiting)) await each.release?.()
      process.off('warning', onWarning)
      assert.deepEqual(warned, [])
    },
  )
}

test(
  'B040 B168: every step leaves the key with an end: there is no state in which it stays for ever',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const { store } = await stage.party()
    const leases = createLeases(store, { ttlMs: 2000, lockDelayMs: 500 })
    stage.atEnd(() => leases.close())
    const left = async () => Number(await stage.server.send('PTTL', 'holdfast:lease:default:k'))
    const between = async (what: string, least: number, most: number) => {
      const ms = await left()
      assert.ok(ms > least && ms <= most, `${what}: ${ms} ms`)
    }
    const lease = await leases.acquire('k', { heartbeat: false, label: 'x'.repeat(100) })
    await between('acquired', 2000, 2500)
    await stage.server.send('PEXPIRE', 'holdfast:lease:default:k', 1000)
    await lease.renew()
    await between('renewed', 2000, 2500)
    await leases.revoke('k')
    await between('asked back', 1500, 2500)
    await assert.rejects(lease.renew(), { reason: 'revoked' })
    await lease.release()
    assert.ok((await left()) !== -1, 'let go of')
    await stage.server.send('DEL', 'holdfast:lease:default:k')
    const brief = await leases.acquire('k', { minHoldMs: 900 })
    await brief.release()
    await between('kept', 0, 900)
    await sleep(950)
    assert.equal(await left(), -2)
    const keys = (await stage.server.send('KEYS', '*')) as string[]
    assert.deepEqual(keys, ['holdfast:fence'], 'the one key without an end')
  },
)
