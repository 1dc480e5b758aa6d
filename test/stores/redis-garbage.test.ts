/** Somebody else's data where the store keeps its own: named, and left as it is. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailableError } from '../../src/index.js'
import { now, ownerAt, type RedisBed, redisBed } from '../support/redis-bed.js'
import { Diary, endOfBelief } from '../support/redis-belief.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const [ONE = assert.fail('no client library')] = CLIENTS
const TTL_MS = 1500
const COUNTER = ['holdfast:fence', 'holdfast:born']
const leaseKey = (name: string) => `holdfast:lease:default:${name}`

/** One command for each kind of value, and for text that is nearly ours. */
const GARBAGE: Readonly<Record<string, (key: string) => string[]>> = {
  'an empty text': (key) => ['SET', key, ''],
  'a text': (key) => ['SET', key, 'somebody else'],
  'a text of several lines': (key) => ['SET', key, 'hf1 o 1 h 1 -\nok'],
  'a text with a TTL': (key) => ['SET', key, 'somebody else', 'EX', '500'],
  'a lease of a later version': (key) => ['SET', key, 'hf2 owner 1 h 1 =label'],
  'a negative number': (key) => ['SET', key, '-5'],
  'a hash': (key) => ['HSET', key, 'field', 'value'],
  'a list': (key) => ['RPUSH', key, 'one', 'two'],
  'a set': (key) => ['SADD', key, 'one'],
  'a sorted set': (key) => ['ZADD', key, '1', 'one'],
  'a stream': (key) => ['XADD', key, '1-1', 'field', 'value'],
}

/** In one step: nobody sees the key missing. */
const putOver = (server: RedisServer, key: string, put: (key: string) => string[]) =>
  server.send('EVAL', 'redis.call("DEL", KEYS[1]) return redis.call(unpack(ARGV))', 1, key, ...put(key))

/** What there is, as the server would restore it; with its end, in whole seconds. */
const stateOf = async (server: RedisServer, key: string) => [
  await server.send('EVAL', 'return redis.sha1hex(redis.call("DUMP", KEYS[1]) or "")', 1, key),
  await server.send('EXPIRETIME', key),
]

const isRefused = (work: Promise<unknown>, what: string, key: string, kind: string) =>
  assert.rejects(work, (error: Error) => {
    assert.ok(error instanceof StoreUnavailableError, `${error}`)
    assert.match(
      error.message,
      new RegExp(
        `could not ${what}: the key "${key}" holds something that is not ${kind} \\(of this version\\); it was left as it is$`,
      ),
    )
    return true
  })

describe('foreign data', { ...withRedis, concurrency: 4 }, async () => {
  if (withRedis.skip) return
  const server = await redisServer()
  const diary = new Diary()
  const bed: RedisBed = await redisBed(server, ONE, { ttlMs: TTL_MS, observe: diary.observe })
  const { leases } = bed
  after(async () => {
    await bed.end()
    await server.end()
  })

  test('B017: under the name of a key: the two do not meet', async () => {
    await server.send('HSET', 'order:1', 'field', 'value')
    await server.send('SET', 'order:2', 'x')
    for (const key of ['order:1', 'order:2']) {
      const lease = await leases.acquire(key, { waitMs: 0 })
      assert.equal(await lease.release(), 'released')
    }
    assert.equal(await server.send('HGET', 'order:1', 'field'), 'value')
    assert.equal(await server.send('GET', 'order:2'), 'x')
  })

  for (const [what, put] of Object.entries(GARBAGE)) {
    test(`B017: ${what} where a lease would be`, async () => {
      const name = `at-${what.replaceAll(' ', '-')}`
      const key = leaseKey(name)
      await server.send(...put(key))
      const before = await stateOf(server, key)
      await isRefused(leases.acquire(name, { waitMs: 0 }), `acquire "${name}"`, key, 'a lease')
      await isRefused(leases.inspect(name), `inspect "${name}"`, key, 'a lease')
      for (const force of [false, true])
        await isRefused(leases.revoke(name, { force }), `revoke "${name}"`, key, 'a lease')
      // What is no lease is not among them, and hides none.
      const others = await leases.acquire(`${name}-beside`, { waitMs: 0 })
      const listed: string[] = []
      for await (const { key } of leases.list(name)) listed.push(key)
      assert.deepEqual(listed, [`${name}-beside`])
      await others.release()
      assert.deepEqual(await stateOf(server, key), before)
    })

    test(`${what} over a lease that is held: at risk, held to its deadline, and goes on if that was mended`, async () => {
      const name = `${what.replaceAll(' ', '-')}-over`
      const key = leaseKey(name)
      const [mended, lasting] = [await leases.acquire(`${name}-mended`), await leases.acquire(name)]
      const original = String(await server.send('GET', leaseKey(`${name}-mended`)))
      for (const each of [leaseKey(`${name}-mended`), key]) {
        await putOver(server, each, put)
      }
      const before = await stateOf(server, key)
      await sleep(TTL_MS / 3 + 150)
      assert.ok(mended.held && lasting.held, 'no loss by itself')
      await server.send('SET', leaseKey(`${name}-mended`), original, 'PX', TTL_MS)
      const mendedAt = now()
      const belief = await endOfBelief(lasting)
      assert.equal(belief.reason, 'expired')
      assert.match(String(lasting.signal.reason), /the last renewal failed: .* holds something that is not a lease/)
      assert.ok(belief.lastHeldAt > mendedAt)
      assert.ok(mended.held)
      await sleep(TTL_MS / 3)
      assert.ok(mended.held, 'it goes on')
      assert.equal(await mended.release(), 'released')
      // The clean-up after a loss lets go of nothing that is not its own.
      assert.deepEqual(await stateOf(server, key), before)
    })
  }
})

describe('foreign data where the counter of fences would be', withRedis, async () => {
  if (withRedis.skip) return
  const server = await redisServer()
  after(() => server.end())
  for (const [what, put] of Object.entries(GARBAGE)) {
    // A time to live is not kept there: the counter must have none.
    if (what === 'a text with a TTL') continue
    test(what, async () => {
      const [bed, fresh] = [await redisBed(server, ONE, { ttlMs: TTL_MS }), await redisBed(server, ONE)]
      try {
        const held = await bed.leases.acquire('held')
        for (const key of COUNTER) await putOver(server, key, put)
        const before = await Promise.all(COUNTER.map((key) => stateOf(server, key)))
        for (const { leases } of [bed, fresh])
          await isRefused(leases.acquire('k', { waitMs: 0 }), 'acquire "k"', 'holdfast:fence', 'the counter of fences')
        assert.equal(await ownerAt(server, 'k'), null, 'no lease without a fence')
        await held.renew()
        assert.ok(held.held, 'whoever has a fence keeps it')
        assert.deepEqual(await Promise.all(COUNTER.map((key) => stateOf(server, key))), before)

        await server.send('DEL', ...COUNTER)
        const next = await bed.leases.acquire('k', { waitMs: 0 })
        assert.ok(next.fence > held.fence)
        assert.deepEqual([await held.release(), await next.release()], ['released', 'released'])
      } finally {
        await Promise.all([bed.end(), fresh.end()])
      }
    })
  }
})
