/** Settings of a client that change what replies look like, and fences that no number of JavaScript or Lua can hold. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { createLeases } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'
import { ownerAt } from '../support/redis-bed.js'
import { type RedisStage, redisStage } from '../support/redis-stage.js'
import { withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary, type TestClient } from '../support/servers/redis-clients.js'

const require = createRequire(import.meta.url)

interface Setting {
  readonly what: string
  readonly also?: Record<string, unknown>
  /** Made of the client before it is given to the store. */
  readonly view?: (client: TestClient) => TestClient
}

const IOREDIS: Setting[] = [
  { what: 'stringNumbers', also: { stringNumbers: true } },
  { what: 'keyPrefix', also: { keyPrefix: 'app:' } },
  { what: 'a commandTimeout too short for anything', also: { commandTimeout: 1 } },
  { what: 'auto-pipelining', also: { enableAutoPipelining: true, autoPipeliningIgnoredCommands: [] } },
  { what: 'resending, without limit', also: { autoResendUnfulfilledCommands: true, maxRetriesPerRequest: null } },
  { what: 'READONLY connections', also: { readOnly: true } },
  { what: 'scripts of its own', also: { scripts: { evalsha: { lua: 'return 1', numberOfKeys: 0 } } } },
]

const RESP3: Setting[] = [
  { what: 'RESP2', also: { protocol: 2 } },
  { what: 'RESP3', also: { protocol: 3 } },
  { what: 'RESP3 with its own shapes', also: { protocol: 3, replyMapping: 'resp3', stringNumbers: true } },
]

/** By the first byte of each type of reply. */
const types = (module: string) => require(module).RESP_TYPES as Record<string, number>

function asBytes(module: string): Record<number, unknown> {
  const { SIMPLE_STRING = 0, BLOB_STRING = 0, VERBATIM_STRING = 0, NUMBER = 0, MAP = 0 } = types(module)
  return { [SIMPLE_STRING]: Buffer, [BLOB_STRING]: Buffer, [VERBATIM_STRING]: Buffer, [NUMBER]: String, [MAP]: Array }
}

const nodeRedis = (module: 'redis-5' | 'redis'): Setting[] => [
  ...[2, 3].flatMap((RESP): Setting[] => [
    { what: `RESP${RESP}`, also: { RESP } },
    {
      what: `RESP${RESP}, everything mapped to bytes and texts`,
      also: { RESP, commandOptions: { typeMapping: asBytes(module) } },
    },
    {
      what: `RESP${RESP}, a view of the client with mapped types`,
      also: { RESP },
      // biome-ignore lint/suspicious/noExplicitAny: five versions of two libraries share no type
      view: (client) => (client as any).withTypeMapping(asBytes(module)),
    },
  ]),
  { what: 'a readonly client', also: { readonly: true } },
  { what: 'a queue of one command', also: { commandsQueueMaxLength: 1 } },
  { what: 'pings all the time', also: { pingInterval: 5 } },
]

const SETTINGS: Record<ClientLibrary['name'], Setting[]> = {
  'ioredis 5': IOREDIS,
  'ioredis 6': [...IOREDIS, ...RESP3],
  'node-redis 4': [
    { what: 'legacyMode', also: { legacyMode: true } },
    { what: 'a readonly client', also: { readonly: true } },
    { what: 'a queue of one command', also: { commandsQueueMaxLength: 1 } },
  ],
  'node-redis 5': nodeRedis('redis-5'),
  'node-redis 6': nodeRedis('redis'),
}

/** As the store spells them, and as most do. */
const NAMES = ['INFO', 'info', 'EVALSHA', 'EVAL', 'evalsha', 'eval']

/** Where the counter stands; what comes next is one more. Below 2^53, right at it, and far beyond 2^63. */
const COUNTERS = ['9007199254740993', '9223372036854775807', '9999999999999999999', '123456789012345678901234567890']

/** Every step, with every answer that it has for one key. */
async function everyStep(stage: RedisStage, library: ClientLibrary, { also = {}, view = (c) => c }: Setting) {
  const client = await library.open({ port: stage.server.port, connect: false, also: { lazyConnect: true, ...also } })
  const store = redisStore(view(client), { trustRestart: true })
  const [ours, others] = [createLeases(store, { ttlMs: 3000 }), createLeases(store, { ttlMs: 3000, label: 'others' })]
  try {
    for (const counter of COUNTERS) {
      await stage.server.send('SET', 'holdfast:fence', counter)
      const lease = await ours.acquire('k', { heartbeat: false, label: 'ours' })
      assert.equal(lease.fence, BigInt(counter) + 1n)
      assert.equal(await ownerAt(stage.server, 'k'), lease.owner)
      assert.equal(await others.tryAcquire('k'), null, 'held by us')
      await assert.rejects(others.acquire('k', { waitMs: 0 }), { code: 'ERR_LEASE_HELD', holder: 'ours' })
      await lease.renew()
      const holding = await others.inspect('k')
      assert.deepEqual([holding?.fence, holding?.state, holding?.label], [lease.fence, 'held', 'ours'])
      assert.ok((holding?.remainingMs ?? 0) > 0)
      const listed = []
      for await (const each of others.list('k')) listed.push(each.fence)
      assert.deepEqual(listed, [lease.fence])

      assert.equal((await others.revoke('k')).kind, 'refusing')
      await assert.rejects(lease.renew(), { code: 'ERR_LEASE_LOST', reason: 'revoked' })
      assert.equal((await others.revoke('k', { force: true })).kind, 'freed')
      assert.equal((await others.revoke('k')).kind, 'absent')
      const next = await others.acquire('k')
      assert.ok(next.fence > lease.fence)
      assert.equal(await lease.release(), 'lost')
      assert.equal(await next.release(), 'released')
      assert.equal(await ownerAt(stage.server, 'k'), null)
    }
  } finally {
    await Promise.all([ours.close(), others.close()])
    library.close(client)
  }
}

for (const library of CLIENTS) {
  test(
    `B107: ${library.name}: whatever its settings make of replies, every step answers the same`,
    withRedis,
    async (t) => {
      const stage = await redisStage(t)
      for (const setting of [{ what: 'defaults' }, ...SETTINGS[library.name]])
        await t.test(setting.what, () => everyStep(stage, library, setting))
    },
  )
}

for (const module of ['ioredis-5', 'ioredis']) {
  test(
    `B107: ${module}: what something in the process rewrites of replies is no verdict, and never a yes`,
    withRedis,
    async (t) => {
      const stage = await redisStage(t)
      const { Redis, Command } = require(module)
      const client = new Redis({ port: stage.server.port, lazyConnect: true })
      const leases = createLeases(redisStore(client, { trustRestart: true }), { ttlMs: 3000 })
      stage.atEnd(() => leases.close())
      const lease = await leases.acquire('held', { heartbeat: false })
      const transformers = Command._transformer.reply
      t.after(() => {
        for (const name of NAMES) delete transformers[name]
      })
      for (const rewritten of [1, true, 'OK', null, undefined, ['ok'], ['g', '7'], Buffer.from('ok'), {}]) {
        for (const name of NAMES) Command.setReplyTransformer(name, () => rewritten)
        // On a connection that stands, replies do not pass through the library any more.
        await lease.renew()
        assert.ok(lease.held)
        const fresh = createLeases(redisStore(client, { trustRestart: true }), { ttlMs: 3000 })
        await assert.rejects(fresh.tryAcquire('k'), { code: 'ERR_LEASE_UNAVAILABLE' }, String(rewritten))
        await fresh.close()
      }
      for (const name of NAMES) delete transformers[name]
      assert.equal(await lease.release(), 'released')
    },
  )
}
