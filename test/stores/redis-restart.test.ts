/** The server is killed and started again while a holder believes: with its memory, and without. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'
import { now, ownerAt, type RedisBed, redisBed } from '../support/redis-bed.js'
import { Diary, endOfBelief } from '../support/redis-belief.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const TTL_MS = 3000
/** Of a server that may have forgotten. */
const WAIT_MS = TTL_MS + 1000
const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always']
/** Both families; what differs in older ones is not what is asked here. */
const NEWEST = CLIENTS.filter(({ name }) => name === 'ioredis 6' || name === 'node-redis 6')
const [ONE = assert.fail('no client library')] = NEWEST

/** A holder, and another who waits for the same key when the server goes. */
interface Scene {
  readonly server: RedisServer
  readonly holder: RedisBed
  readonly holderDiary: Diary
  readonly other: RedisBed
  readonly otherDiary: Diary
}

async function scene(
  library: ClientLibrary,
  { args = [], trustRestart = false }: { args?: readonly string[]; trustRestart?: boolean },
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const server = await redisServer({ args })
  const [holderDiary, otherDiary] = [new Diary(), new Diary()]
  const store = { maxTtlMs: TTL_MS }
  const holder = await redisBed(server, library, { ttlMs: TTL_MS, store, observe: holderDiary.observe })
  const other = await redisBed(server, library, {
    ttlMs: TTL_MS,
    store: { ...store, trustRestart },
    observe: otherDiary.observe,
    label: 'the other',
  })
  try {
    await play({ server, holder, holderDiary, other, otherDiary })
  } finally {
    await Promise.all([holder.end(), other.end()])
    await server.end()
  }
}

/** Resolves with the moment at which the new life was there to answer. */
async function killAndStart(server: RedisServer, options: Parameters<RedisServer['start']>[0] = {}): Promise<number> {
  await server.kill()
  await server.start(options)
  return now()
}

const findingsOf = async (server: RedisServer): Promise<string> => {
  const client = await ONE.open({ port: server.port, connect: false })
  const store = redisStore(client, { maxTtlMs: TTL_MS })
  const { findings } = await store.probe({ signal: new AbortController().signal })
  await store.close()
  ONE.close(client)
  return findings.map(({ level, message }) => `${level}: ${message}`).join('\n')
}

async function isRefused(bed: RedisBed, why: RegExp): Promise<void> {
  await assert.rejects(bed.leases.acquire('fresh', { waitMs: 0 }), (error: Error & Record<string, unknown>) => {
    assert.equal(error.code, 'ERR_LEASE_NOT_READY', error.message)
    assert.match(String(error.why), why)
    const wait = Number(error.retryAfterMs)
    assert.ok(wait > 0 && wait <= WAIT_MS, `told to wait for ${wait} ms`)
    return true
  })
}

/** Another waits, the server is killed; with its answers and the end of the first belief. */
async function takenOver({ server, holder, other }: Scene) {
  const lease = await holder.leases.acquire('k', { heartbeat: false })
  const grant = other.leases.acquire('k', { waitMs: 3 * WAIT_MS }).then((lease) => ({ lease, at: now() }))
  grant.catch(() => {})
  await sleep(100)
  const startedAt = await killAndStart(server)
  const [belief, granted] = await Promise.all([endOfBelief(lease), grant])
  return { lease, startedAt, belief, granted }
}

describe('a server that was restarted without its data', { ...withRedis, concurrency: true }, () => {
  for (const library of NEWEST) {
    test(`${library.name}: another is refused while a belief from before may last, told so at once, and served right after`, () =>
      scene(library, {}, async (scene) => {
        const { holder, holderDiary, other, otherDiary } = scene
        // The first life of the server is young, too.
        await (await other.leases.acquire('other', { waitMs: 2 * WAIT_MS })).release()
        const beating = await holder.leases.acquire('beating')
        const lossOfBeating = endOfBelief(beating).then((belief) => ({ ...belief, at: now() }))
        const { lease, startedAt, belief, granted } = await takenOver(scene)

        const [told, ...more] = otherDiary.attempts('k', startedAt).filter(({ outcome }) => outcome === 'not-ready')
        assert.ok(told, 'it was told')
        assert.ok(told.at - startedAt < 1000, `told after ${told.at - startedAt} ms`)
        assert.ok(told.at < belief.lastHeldAt, 'told while the first one still believed')
        assert.match(told.why ?? '', /^it started [01] s ago, and it keeps no log of its writes \(appendonly no\); /)
        assert.match(
          told.why ?? '',
          /maxTtlMs 3000.*appendonly yes and appendfsync always.*trustRestart \(--trust-restart\)$/,
        )
        const { retryAfterMs = 0 } = told
        assert.ok(retryAfterMs > TTL_MS - 1000 && retryAfterMs <= WAIT_MS, `to wait for ${retryAfterMs} ms`)
        assert.ok(more.length > 0 && more.length <= retryAfterMs / 100, `asked ${more.length} times meanwhile`)

        assert.ok(granted.at > belief.lastHeldAt, `both believed for ${belief.lastHeldAt - granted.at} ms`)
        const readyAt = told.at + retryAfterMs
        assert.ok(granted.at >= readyAt - 10 && granted.at < readyAt + 1000, `served ${granted.at - readyAt} ms after`)
        assert.ok(granted.lease.fence > lease.fence)

        assert.equal(belief.reason, 'expired', 'who does not ask believes to its deadline')
        const lost = await lossOfBeating
        assert.equal(lost.reason, 'missing')
        assert.ok(lost.at - startedAt < TTL_MS / 3 + 500, `lost ${lost.at - startedAt} ms after the restart`)
        assert.equal(holderDiary.count('lost'), 2)
      }))
  }

  // The control: without the wait, this test does see two who believe.
  test('trustRestart: another is granted at once, while the first one believes', () =>
    scene(ONE, { trustRestart: true }, async (scene) => {
      const { lease, startedAt, belief, granted } = await takenOver(scene)
      assert.ok(granted.at - startedAt < 1000, `after ${granted.at - startedAt} ms`)
      assert.ok(belief.lastHeldAt - granted.at > 1000, `both believed for ${belief.lastHeldAt - granted.at} ms`)
      assert.ok(granted.lease.fence > lease.fence, 'the fence tells them apart')
    }))
})

describe('a server that writes each change to disk', { ...withRedis, concurrency: true }, () => {
  const killedWhileHeld = async ({ server, holder, holderDiary }: Scene, start = {}) => {
    const lease = await holder.leases.acquire('k')
    const startedAt = await killAndStart(server, start)
    return { lease, startedAt, renewals: () => holderDiary.count('renewed', startedAt) }
  }
  const stillHeld = async ({ server, other }: Scene, lease: Lease, renewals: () => number) => {
    assert.equal(await ownerAt(server, 'k'), lease.owner)
    await assert.rejects(other.leases.acquire('k', { waitMs: 0 }), { code: 'ERR_LEASE_HELD' })
    await sleep(TTL_MS + 200)
    assert.ok(lease.held)
    assert.ok(renewals() >= 2, `renewed ${renewals()} times`)
    assert.equal(await lease.release(), 'released')
  }

  test('killed and restarted: no wait, and the lease goes on; emptied: a wait', () =>
    scene(ONE, { args: ALWAYS }, async (scene) => {
      const { server, other, otherDiary } = scene
      const { lease, startedAt, renewals } = await killedWhileHeld(scene)
      const fresh = await other.leases.acquire('fresh')
      assert.ok(now() - startedAt < 500, `granted after ${now() - startedAt} ms`)
      assert.ok(fresh.fence > lease.fence)
      assert.equal(otherDiary.attempts('fresh').length, 1)
      assert.equal(await findingsOf(server), '')
      await stillHeld(scene, lease, renewals)
      await fresh.release()

      const again = await scene.holder.leases.acquire('k')
      // The volume was emptied: it says of itself the same as before.
      await killAndStart(server, { empty: true })
      await isRefused(
        other,
        /whether it still has its leases is not sure: an earlier life that forgot nothing has left no word/,
      )
      assert.match(await findingsOf(server), /^warning: .* not ready for another \d+ ms$/)
      assert.equal((await endOfBelief(again)).reason, 'missing')
    }))

  for (const [what, args] of [
    ['appendfsync everysec', ['--appendonly', 'yes', '--appendfsync', 'everysec']],
    ['no-appendfsync-on-rewrite yes', [...ALWAYS, '--no-appendfsync-on-rewrite', 'yes']],
  ] as const) {
    test(`not quite each (${what}): a wait, although the lease is there`, () =>
      scene(ONE, { args }, async (scene) => {
        const { lease, renewals } = await killedWhileHeld(scene)
        await isRefused(scene.other, new RegExp(`^it started .* its log may lack the last writes \\(.*${what}`))
        const findings = await findingsOf(scene.server)
        assert.match(
          findings,
          new RegExp(`^info: .*${what}.*: after each restart it grants nothing for ${WAIT_MS} ms$`, 'm'),
        )
        assert.match(findings, /^warning: .* not ready for another \d+ ms$/m)
        await scene.other.leases.acquire('fresh', { waitMs: 2 * WAIT_MS })
        await stillHeld(scene, lease, renewals)
      }))
  }

  test('a user who may not ask how it saves: a wait', () =>
    scene(ONE, { args: ALWAYS }, async (scene) => {
      const { server } = scene
      await killedWhileHeld(scene)
      await server.send('ACL', 'SETUSER', 'leases', 'on', '>secret', '~*', '&*', '+@all', '-config')
      const client = await ONE.open({ port: server.port, username: 'leases', password: 'secret' })
      const store = redisStore(client, { maxTtlMs: TTL_MS })
      const { findings } = await store.probe({ signal: new AbortController().signal })
      assert.match(findings[0]?.message ?? '', /CONFIG GET is forbidden, so it counts as volatile/)
      assert.match(findings[1]?.message ?? '', /not ready for another/)
      await store.close()
      ONE.close(client)
    }))
})

const AT_ONCE = ['--repl-diskless-sync-delay', '0']

test(
  'B109: a failover to a replica that had not heard of the lease: lost with the next renewal, and a larger fence',
  withRedis,
  () =>
    scene(ONE, { args: AT_ONCE, trustRestart: true }, async ({ server, holder, other }) => {
      const replica = await redisServer({ args: [...AT_ONCE, '--replicaof', '127.0.0.1', `${server.port}`] })
      try {
        await (await holder.leases.acquire('k')).release()
        const has = async (key: string) => (await replica.send('GET', key)) !== null
        while (!(await has('holdfast:fence'))) await sleep(10)
        await replica.send('REPLICAOF', 'NO', 'ONE')
        const lease = await holder.leases.acquire('k')
        assert.ok(!(await has('holdfast:lease:default:k')))
        // The promoted one takes the master's address, as behind a service name.
        await killAndStart(server, { empty: true, args: [...AT_ONCE, '--replicaof', '127.0.0.1', `${replica.port}`] })
        while ((await server.send('GET', 'holdfast:fence').catch(() => null)) === null) await sleep(10)
        await server.send('REPLICAOF', 'NO', 'ONE')
        const next = await other.leases.acquire('k', { waitMs: 2000 })
        assert.ok(next.fence > lease.fence)
        assert.match((await endOfBelief(lease)).reason ?? '', /^(missing|taken)$/)
        assert.equal(await ownerAt(server, 'k'), next.owner, 'nothing was put back')
      } finally {
        await replica.end()
      }
    }),
)
