/** What the Redis store must not believe: settings of today for yesterday's life, an error of somebody in between, an old look. */
import assert from 'node:assert/strict'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { createServer, connect as tcp } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Claim, HeldRef, Store } from '../../src/store.js'
import type { RedisOptions } from '../../src/stores/redis/options.js'
import { redisStore } from '../../src/stores/redis.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always']
const EVERYSEC = ['--appendonly', 'yes', '--appendfsync', 'everysec']
const [library] = CLIENTS as [ClientLibrary, ...ClientLibrary[]]

const call = () => ({ signal: new AbortController().signal })
let owners = 0
const claim = (name: string, also: Partial<Claim> = {}): Claim => ({
  key: { namespace: 'n', name },
  owner: `secret-owner-${owners++}`,
  ttlMs: 2_000,
  lockDelayMs: 0,
  minHoldMs: 0,
  fenceFloor: 0n,
  queue: false,
  life: 'outlives-process',
  ...also,
})

async function onStore<T>(
  port: number,
  options: RedisOptions,
  work: (store: Store) => Promise<T>,
  { open, close } = library,
): Promise<T> {
  const client = await open({ port, connect: false })
  const store = redisStore(client, options)
  try {
    return await work(store)
  } finally {
    await store.close()
    close(client)
  }
}

async function withServer(args: readonly string[], work: (server: RedisServer) => Promise<void>): Promise<void> {
  const server = await redisServer({ args })
  try {
    await work(server)
  } finally {
    await server.end()
  }
}

const acquired = (server: RedisServer, name: string, options: RedisOptions, ttlMs = 2_000) =>
  onStore(server.port, options, (store) => store.acquire(claim(name, { ttlMs }), call()))

describe('doubts about Redis', withRedis, () => {
  test('what is durable now says nothing of a life before that was not', () =>
    withServer(ALWAYS, async (server) => {
      assert.equal((await acquired(server, 'a', { trustRestart: true })).kind, 'granted')
      await server.stop()
      await server.start({ args: EVERYSEC })
      await onStore(server.port, {}, (store) => store.probe(call()))
      await sleep(1_200)
      // A crash with a slow disk: what was acknowledged last is not in the log.
      const log = join(server.folder, 'appendonlydir')
      const file = join(log, readdirSync(log).find((name) => name.includes('.incr.')) as string)
      const { size } = statSync(file)
      assert.equal((await acquired(server, 'job', { trustRestart: true }, 20_000)).kind, 'granted')
      await server.kill()
      truncateSync(file, size)
      await server.start({ args: ALWAYS })
      assert.equal((await acquired(server, 'job', {})).kind, 'not-ready')
    }))

  test('every prefix of a durable server grants at once after a restart', () =>
    withServer(ALWAYS, async (server) => {
      for (const prefix of ['a', 'b']) await acquired(server, 'k', { prefix, trustRestart: true })
      await server.kill()
      await server.start()
      for (const prefix of ['a', 'b']) assert.equal((await acquired(server, 'other', { prefix })).kind, 'granted')
    }))

  test('an ERR may come from a proxy after the server has acted: nobody knows', () =>
    withServer([], async (server) => {
      const proxy = createServer((near) => {
        const far = tcp(server.port, '127.0.0.1')
        let isStep = false
        near.on('data', (data) => {
          isStep ||= data.includes('\r\nEVAL')
          far.write(data)
        })
        far.on('data', (data) =>
          near.write(isStep && !data.includes('NOSCRIPT') ? '-ERR Connection timed out\r\n' : data),
        )
        near.on('error', () => {}).on('close', () => far.destroy())
        far.on('error', () => {})
      })
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
      const { port } = proxy.address() as { port: number }
      await onStore(port, { trustRestart: true }, (store) =>
        assert.rejects(store.acquire(claim('k'), call()), { name: 'StoreError', effect: 'unknown' }),
      )
      proxy.close()
      assert.match(String(await server.send('GET', 'holdfast:lease:n:k')), /^hf1 /)
    }))

  test('an error shows no owner, also where the server repeats what it does not know', () =>
    withServer(['--rename-command', 'EVALSHA', ''], (server) =>
      onStore(server.port, { trustRestart: true }, async (store) => {
        const error = await store.acquire(claim('k'), call()).catch((error: unknown) => error)
        assert.match(String(error), /unknown command/)
        assert.doesNotMatch(inspect(error, { depth: null, showHidden: true }), /secret-owner/)
      }),
    ))

  test('a late answer is not taken for a moved clock', () =>
    withServer([], (server) =>
      onStore(server.port, { trustRestart: true }, async (store) => {
        await store.acquire(claim('warm'), call())
        for (const name of ['first', 'second']) {
          server.pause()
          const late = assert.rejects(store.acquire(claim(name, { ttlMs: 300 }), call()), /too late to be of use/)
          await sleep(900)
          server.resume()
          await late
        }
      }),
    ))

  for (const each of CLIENTS) {
    test(`${each.name}: a probe looks anew`, () =>
      withServer([], (server) => {
        const probing = async (store: Store) => {
          const { serverTimeMs = 0 } = await store.probe(call())
          const steps = Array.from({ length: 200 }, (_, i) => store.acquire(claim(`k${i}`), call()))
          await Promise.all([store.probe(call()), ...steps, store.probe(call())])
          await sleep(300)
          await server.send('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
          const later = await store.probe(call())
          assert.ok((later.serverTimeMs ?? 0) - serverTimeMs >= 300)
          assert.ok(later.findings.some(({ level }) => level === 'unsafe'))
        }
        return onStore(server.port, { trustRestart: true }, probing, each)
      }))
  }

  test('a counter with leading zeros is no counter: its fence would be another text than its number', () =>
    withServer([], (server) =>
      onStore(server.port, { trustRestart: true }, async (store) => {
        const first = claim('k')
        const grant = await store.acquire(first, call())
        assert.equal(grant.kind, 'granted')
        await server.send('SET', 'holdfast:fence', '0009999999999999999999')
        await assert.rejects(store.acquire(claim('other'), call()), /not the counter of fences/)
        const held: HeldRef = { ...first, fence: (grant as { fence: bigint }).fence }
        await assert.rejects(store.renew({ ...held, fenceFloor: 5n }, call()), /not the counter of fences/)
        assert.equal(await server.send('GET', 'holdfast:fence'), '0009999999999999999999')
      }),
    ))
})
