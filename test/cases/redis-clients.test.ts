/** What clients of several libraries, versions and settings make of our questions and of the server's answers. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { createLeases } from '../../src/index.js'
import { type RedisClientLike, redisStore } from '../../src/stores/redis.js'
import { redisStage } from '../support/redis-stage.js'
import { redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const require = createRequire(import.meta.url)
const NODE_REDIS = ['redis-4', 'redis-5', 'redis'] as const
const IOREDIS = ['ioredis-5', 'ioredis'] as const
const nowhere = { host: '127.0.0.1', port: 1 }

/** What is no client for one server, and what the refusal says of it. None of them ever connects. */
function wrongClients(): [what: string, client: unknown, said: RegExp][] {
  const cluster = /a client of a Redis Cluster, which this version cannot use yet$/
  const sentinel = /a client of Redis Sentinel, which this version cannot use yet$/
  const old = Object.assign(Object.create({ call() {}, duplicate() {}, connect() {} }), { status: 'wait' })
  old.options = { ...nowhere, dropBufferSupport: false }
  return [
    ['undefined', undefined, /but got undefined$/],
    ['null', null, /but got null$/],
    ['a URL', 'redis://localhost', /but got string$/],
    ['a class', require('ioredis').Redis, /but got function$/],
    ['a promise', Promise.resolve({}), /but got a promise; await it first$/],
    ['options', { ...nowhere }, /an object without duplicate\(\)$/],
    ['a module', require('redis'), /an object without duplicate\(\)$/],
    ['a multi', require('redis').createClient().multi(), /an object without duplicate\(\)$/],
    ['something else with duplicate()', { duplicate() {} }, /neither \(node-redis 3 and older cannot be used\)$/],
    ['redis 3, by its shape', { duplicate() {}, send_command() {}, connected: true }, /node-redis 3 and older/],
    ['ioredis 4, by its shape', old, /ioredis 4 or older$/],
    ...IOREDIS.flatMap((module): [string, unknown, RegExp][] => {
      const { Redis, Cluster } = require(module)
      const sentinels = { sentinels: [nowhere], name: 'm', lazyConnect: true }
      return [
        [`Cluster of ${module}`, new Cluster([nowhere], { lazyConnect: true }), cluster],
        [`${module} with sentinels`, new Redis(sentinels), sentinel],
      ]
    }),
    ...NODE_REDIS.map((module): [string, unknown, RegExp] => {
      const rootNodes = [{ url: 'redis://127.0.0.1:1' }]
      return [`cluster of ${module}`, require(module).createCluster({ rootNodes }), cluster]
    }),
    ...['redis-5', 'redis'].map((module): [string, unknown, RegExp] => {
      const made = require(module).createSentinel({ name: 'm', sentinelRootNodes: [nowhere] })
      return [`sentinel of ${module}`, made, sentinel]
    }),
  ]
}

test('B016: what is no client for one server is refused where it is given, with the list of what is one', () => {
  for (const [what, client, said] of wrongClients()) {
    assert.throws(
      () => redisStore(client as RedisClientLike),
      (error) => {
        assert.ok(error instanceof TypeError, what)
        assert.match(error.message, /^redisStore: expected a client of ioredis \(5 or newer\) or node-redis /, what)
        assert.match(error.message, /\(the package redis, 4 or newer\) for one server, but got /, what)
        assert.match(error.message, said, what)
        return true
      },
    )
  }
})

for (const library of CLIENTS) {
  test(
    `B016: ${library.name}: never connected, connected, closed, or a duplicate: all the same`,
    withRedis,
    async (t) => {
      const stage = await redisStage(t)
      const unconnected = await library.open({ port: stage.server.port, connect: false, also: { lazyConnect: true } })
      const connected = await library.open({ port: stage.server.port })
      const closed = await library.open({ port: stage.server.port })
      library.close(closed)
      const duplicate = unconnected.duplicate()
      for (const client of [unconnected, connected, closed, duplicate]) {
        const store = redisStore(client, { trustRestart: true })
        stage.atEnd(() => store.close())
        stage.atEnd(() => library.close(client))
        const leases = createLeases(store, { ttlMs: 3000 })
        const lease = await leases.tryAcquire('k')
        assert.ok(lease)
        assert.equal(await lease.release(), 'released')
      }
    },
  )

  test(`B016: ${library.name}: a server that cannot be reached is not contention, nor what a wrong client looks like`, async (t) => {
    const server = await redisServer()
    await server.end()
    const client = await library.open({ port: server.port, connect: false, also: { lazyConnect: true } })
    const leases = createLeases(redisStore(client), { ttlMs: 3000 })
    t.after(() => leases.close())
    await assert.rejects(leases.tryAcquire('k'), { code: 'ERR_LEASE_UNAVAILABLE', message: /ECONNREFUSED/ })
    library.close(client)
  })
}
