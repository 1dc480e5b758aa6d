/** The server answers, and refuses: for reasons of its own, for a while. No lease is lost by that. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailableError, StoreUnsafeError } from '../../src/index.js'
import { now, ownerAt, redisBed } from '../support/redis-bed.js'
import { Diary, endOfBelief } from '../support/redis-belief.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'
import type { RawConnection } from '../support/servers/resp.js'

const TTL_MS = 3000
const NEWEST = CLIENTS.filter(({ name }) => name === 'ioredis 6' || name === 'node-redis 6')
const [ONE = assert.fail('no client library')] = NEWEST

/** The server, and a connection to it that was there before. */
interface At {
  readonly server: RedisServer
  readonly wire: RawConnection
}

interface Condition {
  readonly what: string
  readonly args?: readonly string[]
  readonly prepare?: (at: At) => Promise<unknown>
  readonly begin: (at: At) => Promise<unknown>
  readonly end: (at: At) => Promise<unknown>
  /** What a new acquisition is told. */
  readonly told: RegExp
  /** What the holder is told meanwhile; `null` where renewals go on. */
  readonly atRisk: RegExp | null
}

const CONDITIONS: readonly Condition[] = [
  {
    what: 'out of memory',
    begin: ({ wire }) => wire.send('CONFIG', 'SET', 'maxmemory', '1'),
    end: ({ wire }) => wire.send('CONFIG', 'SET', 'maxmemory', '0'),
    told: /could not acquire "k": refused SET: its memory is full \(maxmemory\) \(OOM /,
    // A renewal needs no memory.
    atRisk: null,
  },
  {
    what: 'B054: a script of somebody that does not end',
    args: ['--busy-reply-threshold', '50'],
    async begin({ server }) {
      const busy = await server.connection({ timeoutMs: 20_000 })
      busy.send('EVAL', 'while true do end', 0).catch(() => busy.close())
      await sleep(200)
    },
    end: ({ server }) => server.send('SCRIPT', 'KILL'),
    told: /could not acquire "k": refused: a script of somebody keeps it busy \(BUSY /,
    atRisk: /a script of somebody keeps it busy \(BUSY /,
  },
  {
    what: 'loading its data',
    args: ['--appendonly', 'yes', '--appendfsync', 'always', '--key-load-delay', '100'],
    prepare: ({ wire }) => wire.send('EVAL', 'for i = 1, 20000 do redis.call("SET", "data:" .. i, "x") end', 0),
    async begin({ server }) {
      await server.kill()
      await server.start({ loading: true })
    },
    end: async ({ server }) => {
      await server.send('CONFIG', 'SET', 'key-load-delay', '0')
      while (/loading:1/.test(String(await server.send('INFO', 'persistence')))) await sleep(20)
    },
    told: /could not acquire "k": (is still loading its data|refused: it is still loading its data \(LOADING .*\))$/,
    atRisk: /loading its data/,
  },
  {
    what: 'cannot save to disk',
    args: ['--dbfilename', 'dump'],
    async begin({ server, wire }) {
      // A folder that is not empty, where the dump should be.
      mkdirSync(join(server.folder, 'dump'))
      writeFileSync(join(server.folder, 'dump', 'file'), '')
      await wire.send('CONFIG', 'SET', 'save', '3600 1')
      await wire.send('BGSAVE')
      while (!/rdb_last_bgsave_status:err/.test(String(await wire.send('INFO', 'persistence')))) await sleep(10)
    },
    async end({ server, wire }) {
      rmSync(join(server.folder, 'dump'), { recursive: true })
      await wire.send('BGSAVE')
      while (!/rdb_last_bgsave_status:ok/.test(String(await wire.send('INFO', 'persistence')))) await sleep(10)
    },
    told: /could not acquire "k": refused SET: it cannot save to disk and refuses writes \(MISCONF /,
    atRisk: /it cannot save to disk and refuses writes \(MISCONF /,
  },
  {
    what: 'too few replicas',
    begin: ({ wire }) => wire.send('CONFIG', 'SET', 'min-replicas-to-write', '1'),
    end: ({ wire }) => wire.send('CONFIG', 'SET', 'min-replicas-to-write', '0'),
    told: /could not acquire "k": refused SET: too few replicas are connected \(min-replicas-to-write\) \(NOREPLICAS /,
    atRisk: /too few replicas are connected .*NOREPLICAS /,
  },
  {
    what: 'too many clients',
    async begin({ wire }) {
      await wire.send('CONFIG', 'SET', 'maxclients', '1')
      await wire.send('CLIENT', 'KILL', 'SKIPME', 'yes')
    },
    end: ({ wire }) => wire.send('CONFIG', 'SET', 'maxclients', '1000'),
    // Most libraries do not show what the server says to a client that it does not let in.
    told: /could not acquire "k": .*(max number of clients reached|hung up before it answered .* too many clients)/,
    atRisk: /max number of clients reached|too many clients/,
  },
]

async function refusing(condition: Condition, library = ONE): Promise<void> {
  const { what, args = [], told, atRisk } = condition
  const server = await redisServer({ args })
  const wire = await server.connection()
  const diary = new Diary()
  const bed = await redisBed(server, library, { ttlMs: TTL_MS, observe: diary.observe })
  try {
    const lease = await bed.leases.acquire('held')
    await condition.prepare?.({ server, wire })
    const heldAt = now()
    await condition.begin({ server, wire })
    const begunAt = now()
    await assert.rejects(bed.leases.acquire('k', { waitMs: 0 }), (error: Error) => {
      assert.ok(error instanceof StoreUnavailableError, `${error}`)
      assert.match(error.message, told)
      return true
    })
    while (diary.count(atRisk ? 'at-risk' : 'renewed', begunAt) === 0 && now() < begunAt + TTL_MS) await sleep(10)
    if (atRisk) assert.match(diary.lastRisk(begunAt), atRisk)
    assert.ok(lease.held, `${what} is no loss`)

    await condition.end({ server, wire })
    assert.ok(now() < heldAt + TTL_MS, 'the condition ended in time')
    const endedAt = now()
    while (diary.count('renewed', endedAt) === 0 && lease.held) await sleep(10)
    assert.ok(lease.held, `lost: ${lease.signal.reason}`)
    assert.equal(await ownerAt(server, 'held'), lease.owner)
    await (await bed.leases.acquire('k', { waitMs: 1000 })).release()
    assert.equal(await lease.release(), 'released')
  } finally {
    await bed.end()
    wire.close()
    await server.end()
  }
}

describe('the server refuses for a while', { ...withRedis, concurrency: 3 }, () => {
  for (const condition of CONDITIONS) {
    test(`${condition.what}: told so, the lease stands, and goes on when that is over`, () => refusing(condition))
  }

  test('for longer than the TTL: lost at the deadline, and the message says why', async () => {
    const server = await redisServer()
    const bed = await redisBed(server, ONE, { ttlMs: 1000 })
    try {
      const lease = await bed.leases.acquire('held')
      await server.send('CONFIG', 'SET', 'min-replicas-to-write', '1')
      assert.equal((await endOfBelief(lease)).reason, 'expired')
      assert.match(String(lease.signal.reason), /its deadline passed .*; the last renewal failed: .*NOREPLICAS/)
    } finally {
      await bed.end()
      await server.end()
    }
  })

  for (const library of NEWEST) {
    for (const stale of ['yes', 'no']) {
      test(`${library.name}: demoted to a replica (replica-serve-stale-data ${stale}) and promoted again`, async () => {
        const server = await redisServer({ args: ['--replica-serve-stale-data', stale] })
        const diary = new Diary()
        const bed = await redisBed(server, library, { ttlMs: TTL_MS, observe: diary.observe })
        try {
          const lease = await bed.leases.acquire('held')
          // Nobody is there: it keeps the data it has.
          await server.send('REPLICAOF', '127.0.0.1', '1')
          const demotedAt = now()
          const errors: unknown[] = []
          for (let i = 0; i < 2; i++) await bed.leases.acquire('k', { waitMs: 0 }).catch((error) => errors.push(error))
          const [first, second] = errors
          assert.ok(first instanceof StoreUnavailableError, `${first}`)
          assert.match(
            first.message,
            stale === 'yes' ? /it is a replica by now \(READONLY/ : /a replica without its master/,
          )
          assert.ok(second instanceof StoreUnsafeError, `${second}`)
          assert.match(
            second.message,
            /is a replica of 127\.0\.0\.1:1 \(INFO: role:slave\), and only a master may grant; give/,
          )
          while (diary.count('at-risk', demotedAt) === 0 && lease.held) await sleep(10)
          assert.match(diary.lastRisk(demotedAt), stale === 'yes' ? /READONLY/ : /MASTERDOWN/)
          assert.ok(lease.held, 'no loss by itself')

          await server.send('REPLICAOF', 'NO', 'ONE')
          const promotedAt = now()
          while (diary.count('renewed', promotedAt) === 0 && lease.held) await sleep(10)
          assert.ok(lease.held, `lost: ${lease.signal.reason}`)
          await sleep(Math.max(0, demotedAt + 1100 - now()))
          await (await bed.leases.acquire('k', { waitMs: 0 })).release()
          assert.equal(await lease.release(), 'released')
        } finally {
          await bed.end()
          await server.end()
        }
      })
    }
  }
})
