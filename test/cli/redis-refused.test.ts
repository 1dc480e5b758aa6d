/** What is refused on Redis, with which exit code, and that no output holds the password. */
import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { freePort } from '../support/servers/launched.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { bench, ONE_LINE } from './support.js'

const cli = bench()
const LOG = join(cli.folder, 'log')
/** Every way to ask, and what may be said where one way is not concerned. */
const asking = (url: string) => {
  const env = { HOLDFAST_STORE: url, HOLDFAST_DEBUG: '1', DEBUG: '*' }
  return [
    { env, args: ['run', '-n', '--json-log', LOG, 'k', '--', 'touch', 'ran'] },
    { env, args: ['ls', '--json'] },
    { env, args: ['show', '--json', 'k'] },
    { env, args: ['revoke', 'k'] },
  ]
}

async function refuses(url: string, code: number, message: RegExp, outcome: string): Promise<void> {
  rmSync(LOG, { force: true })
  const what = asking(url)
  const results = await Promise.all(what.map(({ args, env }) => cli.run(args, { env })))
  results.forEach((result, index) => {
    const about = `${what[index]?.args.join(' ')}\n${result.stdout}\n${result.stderr}`
    assert.equal(result.code, code, about)
    // With HOLDFAST_DEBUG the stack follows.
    assert.match(result.stderr.split('\n')[0] ?? '', message, about)
    assert.match(result.stderr, /^(?:holdfast: .*\n)+$/, about)
    assert.doesNotMatch(result.stdout + result.stderr, /geheim/, about)
  })
  const log = readFileSync(LOG, 'utf8')
  assert.doesNotMatch(log, /geheim/)
  const last = JSON.parse(log.trim().split('\n').at(-1) ?? '') as { outcome: string; exitCode: number }
  assert.deepEqual([last.outcome, last.exitCode], [outcome, code])
}

describe('no verdict: 69', withRedis, () => {
  test('a server that is down', async () => {
    const port = await freePort()
    const message = new RegExp(`^holdfast: redis at 127.0.0.1:${port} .*ECONNREFUSED`)
    await refuses(`redis://:geheim@127.0.0.1:${port}`, 69, message, 'unavailable')
  })

  test('a host of which nobody knows an address', () =>
    refuses(
      'redis://:geheim@no-such-host.invalid',
      69,
      /^holdfast: redis at no-such-host.invalid:6379 .*(?:ENOTFOUND|EAI_AGAIN)/,
      'unavailable',
    ))

  test('what answers, but is no Redis', async () => {
    const web = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'))
    }).listen(0, '127.0.0.1')
    const { port } = await new Promise<AddressInfo>((resolve) =>
      web.once('listening', () => resolve(web.address() as AddressInfo)),
    )
    try {
      await refuses(
        `redis://:geheim@127.0.0.1:${port}`,
        69,
        new RegExp(`redis at 127.0.0.1:${port} .*what answers there is no Redis`),
        'unavailable',
      )
    } finally {
      web.close()
    }
  })

  test('what accepts and never answers: as long as one call may take, not for ever', async () => {
    const mute = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
    const { port } = await new Promise<AddressInfo>((resolve) =>
      mute.once('listening', () => resolve(mute.address() as AddressInfo)),
    )
    try {
      await refuses(`redis://:geheim@127.0.0.1:${port}`, 69, new RegExp(`redis at 127.0.0.1:${port} `), 'unavailable')
    } finally {
      mute.close()
    }
  })

  describe('one that wants a password', () => {
    let server: RedisServer
    before(async () => {
      server = await redisServer({ password: 'right' })
    })
    after(() => server.end())

    test('a wrong one', () => refuses(server.url({ password: 'geheim' }), 69, /redis at .*WRONGPASS/, 'unavailable'))
    test('an unknown user', () =>
      refuses(server.url({ username: 'geheim', password: 'right' }), 69, /redis at .*WRONGPASS/, 'unavailable'))
    test('none', () => refuses(`redis://127.0.0.1:${server.port}`, 69, /redis at .*NOAUTH/, 'unavailable'))
  })
})

describe('unsafe: 78', withRedis, () => {
  test('a replica', async () => {
    const master = await redisServer()
    const replica = await redisServer({ args: ['--replicaof', '127.0.0.1', `${master.port}`] })
    try {
      const run = await cli.run(['run', '-n', '--store', replica.url(), 'k', '--', 'touch', 'ran'])
      assert.equal(run.code, 78, run.stderr)
      assert.match(run.stderr, ONE_LINE)
      assert.match(run.stderr, new RegExp(`redis at 127.0.0.1:${replica.port} is a replica`))
    } finally {
      await Promise.all([master.end(), replica.end()])
    }
  })

  test('a server that may evict leases, unless allow-eviction=yes', async () => {
    const server = await redisServer({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] })
    try {
      const args = ['run', '-n', '--trust-restart', '--quiet', 'k', '--', 'echo', 'ran']
      const refused = await cli.run(args, { env: { HOLDFAST_STORE: server.url() } })
      assert.equal(refused.code, 78, refused.stderr)
      assert.match(refused.stderr, ONE_LINE)
      assert.match(refused.stderr, /redis at .*maxmemory_policy:allkeys-lru.*allow-eviction=yes/)
      const allowed = await cli.run(args, { env: { HOLDFAST_STORE: `${server.url()}?allow-eviction=yes` } })
      assert.deepEqual([allowed.code, allowed.stdout, allowed.stderr], [0, 'ran\n', ''])
      const no = await cli.run(args, { env: { HOLDFAST_STORE: `${server.url()}?allow-eviction=no` } })
      assert.equal(no.code, 78)
    } finally {
      await server.end()
    }
  })
})

describe('bad usage: 64, before anything is asked', () => {
  // Nobody listens there: whoever asked would get 69.
  const NOWHERE = 'redis://:geheim@127.0.0.1:1'
  const cases: [what: string, args: string[], store: string, message: RegExp][] = [
    [
      'a ttl above max-ttl',
      ['--ttl', '31s'],
      NOWHERE,
      /--ttl must lie between 50ms and 30s on redis, but got 31s; .*\?max-ttl=5m/,
    ],
    [
      'the default ttl above max-ttl',
      [],
      `${NOWHERE}?max-ttl=5s`,
      /--ttl must lie between 50ms and 5s on redis, but got 10s; /,
    ],
    ['a ttl below all', ['--ttl', '1ms'], NOWHERE, /--ttl must be at least [^?]*$/],
    [
      'ttl and lock delay together',
      ['--lock-delay', '25s'],
      NOWHERE,
      /--lock-delay must be at most 20s .*but got 25s; .*\?max-ttl=/,
    ],
    [
      'a min-hold above max-ttl',
      ['--min-hold', '1m'],
      NOWHERE,
      /--min-hold must be at most 30s on redis, but got 1m; .*\?max-ttl=/,
    ],
    ['max-ttl out of bounds', [], `${NOWHERE}?max-ttl=10ms`, /max-ttl must be between 1s and 1d, but got 10ms/],
    ['a prefix with braces', [], `${NOWHERE}?prefix=%7Ba%7D`, /prefix must be .* without braces/],
    ['an unknown parameter', [], `${NOWHERE}?tls=yes`, /no parameter "tls" \(known: max-ttl, prefix, /],
    ['--trust-restart on a file', ['--trust-restart'], 'sqlite:leases.db', /--trust-restart is for redis:/],
  ]
  for (const [what, args, store, message] of cases) {
    test(what, async () => {
      const { code, stderr } = await cli.run(['run', ...args, 'k', '--', 'true'], { env: { HOLDFAST_STORE: store } })
      assert.equal(code, 64, stderr)
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, message)
      assert.doesNotMatch(stderr, /geheim/)
    })
  }

  test('control: a ttl as long as max-ttl is asked for', async () => {
    const args = ['run', '--ttl', '40s', 'k', '--', 'true']
    const { code, stderr } = await cli.run(args, { env: { HOLDFAST_STORE: `${NOWHERE}?max-ttl=40s` } })
    assert.equal(code, 69, stderr)
  })
})
