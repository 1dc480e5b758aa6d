/** Where no lease may be had: what is told, and that it tells no secrets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailableError, StoreUnsafeError } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'
import { now, redisBed } from '../support/redis-bed.js'
import { endOfBelief } from '../support/redis-belief.js'
import { refusal, SECRET } from '../support/redis-errors.js'
import { redisServer, withRedis, withRedisTls } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const [ONE = assert.fail('no client library')] = CLIENTS

describe('a server that could grant, but must not', withRedis, () => {
  test('B062: one that may evict leases is refused, whatever the policy; what is lost by it is lost at once', async () => {
    const server = await redisServer({ args: ['--maxmemory', '20mb', '--maxmemory-policy', 'volatile-ttl'] })
    const reckless = await redisBed(server, ONE, { ttlMs: 1200, store: { allowEviction: true } })
    const bed = await redisBed(server, ONE)
    try {
      for (const policy of ['allkeys-lru', 'volatile-lru', 'allkeys-random', 'volatile-ttl']) {
        await server.send('CONFIG', 'SET', 'maxmemory-policy', policy)
        const error = await refusal(ONE, { port: server.port })
        assert.ok(error instanceof StoreUnsafeError, `${error}`)
        assert.equal(
          error.message,
          `redis at 127.0.0.1:${server.port} may evict leases before their time (INFO: maxmemory_policy:${policy}); ` +
            'set maxmemory-policy noeviction, use a server of its own for leases, or take the risk with allowEviction',
        )
      }

      // The control: with allowEviction it is granted, and thrown away.
      const lease = await reckless.leases.acquire('k')
      await server.send('EVAL', 'for i = 1, 30000 do redis.pcall("SET", "data:" .. i, string.rep("x", 1000)) end', 0)
      assert.equal(await server.send('GET', 'holdfast:lease:default:k'), null, 'it was evicted')
      assert.equal((await endOfBelief(lease)).reason, 'missing')

      await assert.rejects(bed.leases.acquire('k', { waitMs: 0 }), StoreUnsafeError)
      await server.send('FLUSHALL')
      await server.send('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
      await sleep(1000)
      // What was mended is seen, without a restart of the process.
      await (await bed.leases.acquire('again', { waitMs: 0 })).release()
    } finally {
      await Promise.all([bed.end(), reckless.end()])
      await server.end()
    }
  })

  test('with allowEviction: the probe says what may happen', async () => {
    const server = await redisServer({ args: ['--maxmemory-policy', 'allkeys-lfu'] })
    const client = await ONE.open({ port: server.port, connect: false })
    const store = redisStore(client, { allowEviction: true, trustRestart: true })
    try {
      const { findings } = await store.probe({ signal: new AbortController().signal })
      const told = findings.filter(({ message }) => message.includes('evict'))
      assert.deepEqual(
        told.map(({ level }) => level),
        ['warning'],
      )
      assert.match(
        told[0]?.message ?? '',
        /allowEviction is set, and its policy is allkeys-lfu: a lease may be evicted while/,
      )
    } finally {
      await store.close()
      ONE.close(client)
      await server.end()
    }
  })

  test('a replica', async () => {
    const master = await redisServer()
    const replica = await redisServer({ args: ['--replicaof', '127.0.0.1', `${master.port}`] })
    try {
      const error = await refusal(ONE, { port: replica.port })
      assert.ok(error instanceof StoreUnsafeError, `${error}`)
      assert.equal(
        error.message,
        `redis at 127.0.0.1:${replica.port} is a replica of 127.0.0.1:${master.port} (INFO: role:slave), and only a master may grant; give the master's address`,
      )
    } finally {
      await Promise.all([master.end(), replica.end()])
    }
  })
})

/** Which message, and how soon. */
interface Told {
  readonly what: string
  readonly pattern: RegExp
  readonly waitMs?: number
}

describe('who may not log in', withRedis, async () => {
  const server = withRedis.skip ? null : await redisServer({ password: SECRET })
  after(() => server?.end())
  const port = server?.port ?? 0
  for (const library of CLIENTS) {
    for (const [what, user, pattern] of [
      ['no password', {}, /could not acquire "k": refused: it wants a password \(NOAUTH .*\)$/],
      [
        'a wrong password',
        { password: `${SECRET}?` },
        /"k": refused: the user name or the password is wrong \(WRONGPASS .*\)$/,
      ],
      [
        'an unknown user',
        { username: 'who', password: SECRET },
        /the user name or the password is wrong \(WRONGPASS .*\)$/,
      ],
      [
        'a database that is not there',
        { password: SECRET, database: 99 },
        /, database 99 could not acquire "k": .*DB index is out of range/,
      ],
    ] as const) {
      test(`${library.name}: ${what}`, async () => {
        const error = await refusal(library, { port, ...user })
        assert.ok(error instanceof StoreUnavailableError, `${error}`)
        assert.equal(error.code, 'ERR_LEASE_UNAVAILABLE')
        assert.match(error.message, pattern)
        assert.match(error.message, new RegExp(`^redis at 127\\.0\\.0\\.1:${port}`))
      })
    }
  }
})

const HTTP = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\nConnection: close\r\n\r\n400 Bad Request'
const HUNG_UP =
  /could not acquire "k": hung up before it answered \(.+\): it has too many clients, TLS is not set as it wants it, or it is no Redis$/
const NO_REDIS =
  /could not acquire "k": (what answers there is no Redis|hung up before it answered .* or it is no Redis)$/
const NO_ANSWER =
  /could not acquire "k": (no answer within 200 ms|not connected and logged in within 2000 ms|no answer within 2000 ms of connecting)$/

const OTHERS: readonly (Told & { readonly answer: (socket: Socket) => void })[] = [
  { what: 'a web server', answer: (socket) => void socket.once('data', () => socket.end(HTTP)), pattern: NO_REDIS },
  {
    what: 'an SSH server',
    answer: (socket) => void socket.write('SSH-2.0-OpenSSH_9.2p1\r\n'),
    pattern: /what answers there is no Redis$|no answer within 200 ms$/,
  },
  { what: 'one that says nothing', answer: (socket) => void socket.resume(), pattern: NO_ANSWER },
  { what: 'one that hangs up', answer: (socket) => void socket.end(), pattern: HUNG_UP },
  {
    what: 'one that answers anything with OK',
    answer: (socket) => void socket.on('data', () => socket.write('+OK\r\n')),
    pattern: /is it Redis\?|no answer within/,
  },
]

describe('what is no Redis', () => {
  for (const { what, answer, pattern } of OTHERS) {
    test(`${what}, through every library`, async () => {
      const sockets = new Set<Socket>()
      const server = createServer((socket) => {
        sockets.add(socket.on('error', () => {}))
        answer(socket)
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      try {
        const { port } = server.address() as AddressInfo
        for (const library of CLIENTS) {
          for (const user of [{}, { password: SECRET }]) {
            const began = now()
            const error = await refusal(library, { port, ...user })
            assert.ok(error instanceof StoreUnavailableError, `${error}`)
            assert.match(error.message, pattern, library.name)
            assert.ok(now() - began < 1000, `${library.name}: told after ${now() - began} ms`)
          }
        }
      } finally {
        for (const socket of sockets) socket.destroy()
        server.close()
      }
    })
  }

  test('nobody there, through every library', async () => {
    for (const library of CLIENTS) {
      const error = await refusal(library, { port: 1, password: SECRET })
      assert.ok(error instanceof StoreUnavailableError, `${error}`)
      assert.equal(error.message, 'redis at 127.0.0.1:1 could not acquire "k": connect ECONNREFUSED 127.0.0.1:1')
    }
  })
})

test(
  'TLS spoken to a plain port, plain to one of TLS, and an authority that is not trusted',
  withRedisTls,
  async () => {
    const server = await redisServer({ tls: true })
    const tls = { ca: server.ca ?? '' }
    try {
      for (const library of CLIENTS) {
        const toTls = await refusal(library, { port: server.tlsPort ?? 0, password: SECRET })
        assert.match(toTls.message, HUNG_UP, library.name)
        const toPlain = await refusal(library, { port: server.port, host: 'localhost', tls })
        assert.match(toPlain.message, NO_ANSWER, library.name)
        const untrusted = await refusal(library, { port: server.tlsPort ?? 0, host: 'localhost', tls: { ca: '' } })
        assert.match(
          untrusted.message,
          /could not acquire "k": self-signed certificate in certificate chain$/,
          library.name,
        )
        for (const error of [toTls, toPlain, untrusted]) assert.ok(error instanceof StoreUnavailableError, `${error}`)
      }
    } finally {
      await server.end()
    }
  },
)
