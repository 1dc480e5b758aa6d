/** A user who lacks one of the rights that the store needs is told which one; who lacks those for notifications waits longer. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { createLeases, StoreError, StoreUnavailableError } from '../../src/index.js'
import type { Claim } from '../../src/store.js'
import { redisStore } from '../../src/stores/redis.js'
import { now } from '../support/redis-bed.js'
import { redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'
import { LEAST_RIGHTS } from '../support/servers/redis-rights.js'

const NEWEST = CLIENTS.filter(({ name }) => name === 'ioredis 6' || name === 'node-redis 6')
const [ONE = assert.fail('no client library')] = NEWEST
const TTL_MS = 1000
const call = { signal: new AbortController().signal }

type Step = 'acquire' | 'acquire what is held' | 'renew' | 'inspect' | 'list' | 'revoke' | 'release' | 'force'

/** Without it, these fail; all others work. */
const NEEDED: Readonly<Record<string, { readonly fail: readonly Step[] | 'all'; readonly says: RegExp }>> = {
  '+info': {
    fail: 'all',
    says: /its user may not run INFO; what the user needs is in docs\/stores\/redis\.md \(.*info/,
  },
  '+time': {
    fail: 'all',
    says: /its user may not run TIME; what the user needs is in docs\/stores\/redis\.md \(.*time/,
  },
  '+eval': {
    fail: ['acquire'],
    says: /its user may not run EVAL; what the user needs is in docs\/stores\/redis\.md \(.*'eval'/,
  },
  '+evalsha': { fail: ['acquire'], says: /its user may not run EVALSHA; what the user needs is .* \(.*'evalsha'/ },
  '+get': { fail: ['acquire'], says: /its user may not run GET; what the user needs is in docs/ },
  '+set': { fail: ['acquire'], says: /its user may not run SET; what the user needs is in docs/ },
  '+del': { fail: ['force', 'release'], says: /its user may not run DEL; what the user needs is in docs/ },
  '+pttl': {
    fail: ['acquire what is held', 'renew', 'inspect', 'list'],
    says: /its user may not run PTTL; what the user needs/,
  },
  '+pexpire': { fail: ['renew'], says: /its user may not run PEXPIRE; what the user needs is in docs/ },
  '+scan': {
    fail: ['list'],
    says: /its user may not run SCAN; what the user needs is in docs\/stores\/redis\.md \(.*'scan'/,
  },
  '~holdfast:*': {
    fail: ['acquire'],
    says: /its user may not use the store's keys; what the user needs .*keys/,
  },
}
const FOR_HINTS = ['&holdfast:*', '+publish', '+subscribe', '+unsubscribe']

describe('a user without one of the least rights', withRedis, async () => {
  if (withRedis.skip) return
  const server = await redisServer()
  after(() => server.end())

  /** A user of its own, so that no other test's connection is ended by the change. */
  async function userWithout(...rights: string[]) {
    const username = `user-${randomUUID()}`
    await server.send(
      'ACL',
      'SETUSER',
      username,
      'on',
      '>secret',
      ...LEAST_RIGHTS.filter((each) => !rights.includes(each)),
    )
    // What another user has left in the server's memory hides no missing right.
    await server.send('SCRIPT', 'FLUSH')
    await server.send('FLUSHALL')
    return { port: server.port, username, password: 'secret' }
  }

  /** What each step of a lease's life says, where it fails. */
  async function lifeOf(library: ClientLibrary, user: { port: number; username: string; password: string }) {
    const client = await library.open({ ...user, connect: false })
    const store = redisStore(client, { trustRestart: true })
    const failures = new Map<Step, string>()
    const step = async <T>(name: Step, work: Promise<T>): Promise<T | undefined> => {
      try {
        return await work
      } catch (error) {
        assert.ok(error instanceof StoreError, `${error}`)
        assert.equal(error.effect, 'none', `${name}: ${error.message}`)
        assert.match(error.message, new RegExp(`^redis at 127.0.0.1:${user.port}: its user may not `))
        failures.set(name, error.message)
        return undefined
      }
    }
    const claim = (name: string): Claim => ({
      key: { namespace: 'default', name },
      owner: randomUUID(),
      ttlMs: TTL_MS,
      lockDelayMs: 0,
      minHoldMs: 0,
      fenceFloor: 0n,
      queue: false,
      life: 'outlives-process',
    })
    try {
      const mine = claim('k')
      const grant = await step('acquire', store.acquire(mine, call))
      if (grant?.kind !== 'granted') return failures
      await step('acquire what is held', store.acquire(claim('k'), call))
      await new Promise((resolve) => setTimeout(resolve, 20))
      const renewed = await step('renew', store.renew({ ...mine, fence: grant.fence }, call))
      assert.ok(failures.has('renew') || renewed?.kind === 'renewed')
      await step('inspect', store.inspect(mine.key, call))
      const listed = async () => {
        for await (const _ of store.list?.('default', '', call) ?? []);
      }
      await step('list', listed())
      const other = claim('other')
      await store.acquire(other, call)
      await step('revoke', store.revoke?.(other.key, { force: false }, call) as Promise<unknown>)
      await step('force', store.revoke?.(other.key, { force: true }, call) as Promise<unknown>)
      await step('release', store.release(mine, call))
      return failures
    } finally {
      await store.close()
      library.close(client)
    }
  }

  test('the control: with all of them, every step works', async () => {
    for (const library of NEWEST) assert.deepEqual([...(await lifeOf(library, await userWithout()))], [])
  })

  test('each is asked for here', () => {
    assert.deepEqual([...Object.keys(NEEDED), ...FOR_HINTS].sort(), [...LEAST_RIGHTS].sort())
  })

  for (const [right, { fail, says }] of Object.entries(NEEDED)) {
    for (const library of NEWEST) {
      test(`${library.name}: without ${right}`, async () => {
        const failures = await lifeOf(library, await userWithout(right))
        assert.deepEqual([...failures.keys()], fail === 'all' ? ['acquire'] : fail)
        for (const [step, message] of failures) assert.match(message, says, step)
      })
    }
  }

  for (const missing of [...FOR_HINTS.map((right) => [right]), FOR_HINTS]) {
    test(`without ${missing.join(' ')}: all works, and waiting is by polling at worst`, async () => {
      const user = await userWithout(...missing)
      assert.deepEqual([...(await lifeOf(ONE, user))], [])
      const client = await ONE.open({ ...user, connect: false })
      const leases = createLeases(redisStore(client, { trustRestart: true }), { ttlMs: TTL_MS })
      try {
        const first = await leases.acquire('k')
        const waiting = leases.acquire('k', { waitMs: 6000 }).then((lease) => ({ lease, at: now() }))
        await new Promise((resolve) => setTimeout(resolve, 300))
        const releasedAt = now()
        assert.equal(await first.release(), 'released')
        const { lease, at } = await waiting
        assert.ok(at - releasedAt < TTL_MS + 500, `served after ${at - releasedAt} ms`)
        assert.ok(lease.fence > first.fence)
        await lease.release()
      } finally {
        await leases.close()
        ONE.close(client)
      }
    })
  }

  test('a right that is taken away while a lease is held: at risk, not lost, and well when it is given back', async () => {
    const user = await userWithout()
    const client = await ONE.open({ ...user, connect: false })
    const risks: string[] = []
    const leases = createLeases(redisStore(client, { trustRestart: true }), {
      ttlMs: 3000,
      observe: (event) => event.type === 'at-risk' && risks.push((event.error as Error).message),
    })
    try {
      const lease = await leases.acquire('k')
      await server.send('ACL', 'SETUSER', user.username, '-pexpire')
      while (risks.length === 0 && lease.held) await new Promise((resolve) => setTimeout(resolve, 10))
      assert.match(risks[0] ?? '', /its user may not run PEXPIRE/)
      await server.send('ACL', 'SETUSER', user.username, 'off')
      await server.send('CLIENT', 'KILL', 'USER', user.username)
      await assert.rejects(leases.acquire('other', { waitMs: 0 }), (error) => error instanceof StoreUnavailableError)
      assert.ok(lease.held)
      await server.send('ACL', 'SETUSER', user.username, 'on', '+pexpire')
      // For a moment, calls share the last failure.
      await new Promise((resolve) => setTimeout(resolve, 50))
      await lease.renew()
      assert.ok(lease.held)
      assert.equal(await lease.release(), 'released')
    } finally {
      await leases.close()
      ONE.close(client)
    }
  })
})
