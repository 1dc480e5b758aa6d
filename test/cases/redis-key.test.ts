/** How names become keys of a Redis server that others use too. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Leases } from '../../src/index.js'
import { KeySpace } from '../../src/stores/redis/keys.js'
import { redisStore } from '../../src/stores/redis.js'
import { type RedisStage, redisStage } from '../support/redis-stage.js'
import { type RedisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const OURS = 'holdfast:lease:default:'

/** One of each type, and texts that are nearly a lease. */
const FOREIGN: Record<string, (key: string) => (string | number)[]> = {
  hash: (key) => ['HSET', key, 'total', 7],
  list: (key) => ['RPUSH', key, 'a', 'b'],
  set: (key) => ['SADD', key, 'a'],
  'sorted set': (key) => ['ZADD', key, 1, 'a'],
  stream: (key) => ['XADD', key, '1-1', 'a', 'b'],
  number: (key) => ['SET', key, 7],
  'empty text': (key) => ['SET', key, ''],
  bitmap: (key) => ['SETBIT', key, 7, 1],
  'a lease of another version': (key) => ['SET', key, 'hf2 owner 7 h 1 -'],
  'a token of another library': (key) => ['SET', key, '3e2f1a', 'PX', 60_000],
}

const contents = (server: RedisServer, key: string) =>
  server.send('EVAL', `return redis.sha1hex(redis.call('DUMP', KEYS[1]))`, 1, key)

test("B017: a key may be named like the user's data: the two never meet", withRedis, async (t) => {
  const stage = await redisStage(t)
  for (const [type, write] of Object.entries(FOREIGN)) {
    const leases = await stage.leases()
    await stage.server.send(...write(`order:${type}`))
    const before = await contents(stage.server, `order:${type}`)
    const lease = await leases.acquire(`order:${type}`)
    await lease.renew()
    assert.equal(await lease.release(), 'released')
    assert.equal(await contents(stage.server, `order:${type}`), before)
  }
})

test(
  'B017: foreign data at the very key: every call names the key, nothing of the data is changed, no lease is lost by it',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    for (const [type, write] of Object.entries(FOREIGN)) {
      const leases = await stage.leases()
      const lease = await leases.acquire('k', { heartbeat: false })
      await stage.server.send('DEL', `${OURS}k`)
      await stage.server.send(...write(`${OURS}k`))
      const before = await contents(stage.server, `${OURS}k`)
      const calls = {
        acquire: leases.acquire('k', { waitMs: 50 }),
        renew: lease.renew(),
        inspect: leases.inspect('k'),
        revoke: leases.revoke('k'),
        'revoke by force': leases.revoke('k', { force: true }),
      }
      const message = new RegExp(`the key "${OURS}k" holds something that is not a lease`)
      await Promise.all(
        Object.entries(calls).map(([what, call]) =>
          assert.rejects(call, { code: 'ERR_LEASE_UNAVAILABLE', message }, `${type}: ${what}`),
        ),
      )
      assert.ok(lease.held, 'no verdict is no loss')
      await lease.release()
      const listed = []
      for await (const { key } of leases.list()) listed.push(key)
      assert.deepEqual(listed, [], 'a list leaves it out')
      assert.equal(await contents(stage.server, `${OURS}k`), before, type)
      await stage.server.send('DEL', `${OURS}k`)
      await leases.close()
    }
  },
)

test(
  'B017: foreign data in place of the counter of fences: refused by its name, and left as it is',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    for (const [type, write] of Object.entries(FOREIGN)) {
      if (type === 'number') continue
      const leases = await stage.leases()
      await stage.server.send('DEL', 'holdfast:fence')
      await stage.server.send(...write('holdfast:fence'))
      const before = await contents(stage.server, 'holdfast:fence')
      await assert.rejects(leases.tryAcquire('k'), {
        code: 'ERR_LEASE_UNAVAILABLE',
        message: /the key "holdfast:fence" holds something that is not the counter of fences/,
      })
      assert.equal(await contents(stage.server, 'holdfast:fence'), before, type)
      assert.equal(await stage.server.send('EXISTS', `${OURS}k`), 0)
    }
  },
)

test('B068 B145: prefixes, namespaces and databases of one server do not meet; equal ones do', withRedis, async (t) => {
  const stage = await redisStage(t)
  const at = (prefix: string | undefined, namespace: string, database = 0) =>
    stage.leases({ ...(prefix && { store: { prefix } }), client: { database } }, { namespace })
  const apart = [
    await at(undefined, 'default'),
    await at('app', 'default'),
    await at('app:leases', 'default'),
    await at('app', 'lease:default'),
    await at('app', 'default', 3),
  ]
  const held = await Promise.all(apart.map((leases) => leases.tryAcquire('k')))
  assert.ok(held.every((lease) => lease !== null))
  assert.equal(await (await at('app', 'default')).tryAcquire('k'), null)
  assert.equal(await (await at('app', 'default', 3)).tryAcquire('k'), null)
  assert.equal(await stage.server.send('EXISTS', 'app:lease:default:k', 'app:lease:lease%3Adefault:k'), 2)
  // Notifications know no databases: whoever hears of another one's only asks.
  assert.equal((await (apart[4] as Leases).revoke('k', { force: true })).kind, 'freed')
  await held[1]?.renew()
  assert.ok(held[1]?.held)
  await Promise.all(held.map((lease) => lease?.release()))
})

test('B068: a prefix is text of 1 to 64 bytes without braces', () => {
  const { duplicate: _, ...nothing } = { duplicate: 0 }
  const client = {
    ...nothing,
    duplicate() {},
    sendCommand() {},
    isReady: false,
    isOpen: false,
    connect() {},
    options: {},
  }
  for (const prefix of ['', 'x'.repeat(65), '{a}', '€'.repeat(22), '\ud800', 'a\nb', '\u0085'])
    assert.throws(() => redisStore(client, { prefix }), { name: 'RangeError', message: /^prefix must be / })
  assert.throws(() => redisStore(client, { prefix: 7 as never }), TypeError)
  for (const prefix of ['a', ':', 'x'.repeat(64), '€'.repeat(21)]) assert.ok(redisStore(client, { prefix }))
})

for (const library of CLIENTS.filter(({ name }) => name.startsWith('ioredis'))) {
  test(`B068: ${library.name}: applications with different keyPrefix exclude each other`, withRedis, async (t) => {
    const stage = await redisStage(t)
    const at = (keyPrefix: string) => stage.leases({ library, client: { also: { keyPrefix } } }, { label: keyPrefix })
    const [one, two] = [await at('one:'), await at('two:')]
    const lease = await one.acquire('k')
    await assert.rejects(two.acquire('k', { waitMs: 0 }), { code: 'ERR_LEASE_HELD', holder: 'one:' })
    const waiting = two.acquire('k', { waitMs: 5000 })
    assert.equal(await lease.release(), 'released')
    const next = await waiting
    assert.ok(next.fence > lease.fence)
    const keys = (await stage.server.send('KEYS', '*')) as string[]
    assert.deepEqual(keys.sort(), ['holdfast:fence', `${OURS}k`])
    await next.release()
  })
}

test('B132: 200,000 names in odd alphabets: no two keys are equal, and no key is that of another namespace', () => {
  const space = new KeySpace('holdfast')
  const pieces = ['a', 'A', ':', '%', '{', '}', '%3A', '%25', '/', '😀', ' ', '\u0000']
  const text = (n: number) => {
    let out = ''
    for (let rest = n; rest > 0; rest = Math.floor(rest / pieces.length)) out += pieces[rest % pieces.length]
    return out
  }
  const keys = new Set<string>()
  let made = 0
  for (let n = 1; n <= 200_000; n++) {
    // Both halves take part, cut at every place in turn.
    const [namespace, name] = [text(n % 97), text(Math.floor(n / 97) * 97 + 1 + n)]
    keys.add(JSON.stringify([namespace, name]))
    made = Math.max(made, keys.size)
  }
  const different = [...keys].map((each) => JSON.parse(each) as [string, string])
  assert.ok(different.length > 190_000)
  const lease = different.map(([namespace, name]) => space.lease({ namespace, name }))
  assert.equal(new Set(lease).size, different.length)
  for (const key of [space.counter.value, space.counter.born, space.revoked]) assert.ok(!lease.includes(key))
  for (const [i, [namespace, name]] of different.entries())
    assert.equal(space.nameIn(namespace, lease[i] as string), name)
})

/** Gives what releases them. Every key must be free although all before it are held, and be the one that the store then names. */
async function areDifferent(stage: RedisStage, keys: readonly string[]): Promise<() => Promise<void>> {
  const [ours, others] = [await stage.leases({}, { ttlMs: 20_000 }), await stage.leases()]
  const held: (Lease | null)[] = []
  for (const key of keys) {
    held.push(await ours.tryAcquire(key))
    assert.ok(held.at(-1), `${JSON.stringify(key)} must not be another key`)
    assert.equal((await others.inspect(key))?.key, key)
    assert.equal(await others.tryAcquire(key), null)
  }
  const listed = []
  for await (const { key } of others.list()) listed.push(key)
  assert.deepEqual(listed, [...keys].sort())
  return async () => void (await Promise.all(held.map((lease) => lease?.release())))
}

test('B132 B136 B137: names that other stores shorten, hash or fold are different keys here', withRedis, async (t) => {
  const release = await areDifferent(await redisStage(t), [
    // Equal by crc32.
    ...['plumless', 'buckeroo', 'codding', 'gnu'],
    ...[64, 65, 192, 193, 1000, 1023, 1024].map((length) => 'k'.repeat(length)),
    '😀'.repeat(256),
    ...['Job', 'job', 'job ', ' job', 'jöb', 'jo\u0308b', 'straße', 'strasse', 'ß'.repeat(33), 'ß'.repeat(34)],
  ])
  await release()
})

test('B159 B184: odd names, and names that others begin with, are names like all others', withRedis, async (t) => {
  const stage = await redisStage(t)
  const release = await areDifferent(stage, [
    ...[
      'a',
      'a/',
      'a/b',
      'a//b',
      'ab',
      'a/1',
      'a:b',
      'a\u0000',
      'a*',
      'a%',
      'a%2A',
      'a_',
      'a[',
      'a[b]',
      'a?',
      'a\\',
      '*',
    ],
    ...[
      '/',
      '.',
      '..',
      '../..',
      'zookeeper',
      '\u0000',
      '\u0099',
      '\n',
      '\r\n',
      '😀',
      '{x}',
      '{x}a',
      '%7Bx%7D',
      '__proto__',
      ' ',
    ],
  ])
  const leases = await stage.leases()
  const under = async (prefix: string) => {
    const names: string[] = []
    for await (const { key } of leases.list(prefix)) names.push(key)
    return names
  }
  assert.deepEqual(await under('a/'), ['a/', 'a//b', 'a/1', 'a/b'])
  for (const prefix of ['a*', 'a?', 'a\\', '{x', '\r']) {
    const found = await under(prefix)
    assert.ok(found.length > 0 && found.every((name) => name.startsWith(prefix)), `${prefix}: ${found}`)
  }
  assert.deepEqual(await under('a[b'), ['a[b]'])
  // A channel or a pattern of one is not that of another: its waiter is not woken, and nothing waits for nothing.
  const party = await stage.party()
  const waiting = party.leases.acquire('a/b', { waitMs: 300 })
  for (const key of ['a', 'a/', 'a/1', 'ab']) await leases.revoke(key, { force: true })
  await assert.rejects(waiting, { code: 'ERR_LEASE_HELD' })
  await release()
})
