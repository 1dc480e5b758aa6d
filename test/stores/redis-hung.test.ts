/** The server goes silent while a lease is held, seen through real sockets by every client library. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '../../src/index.js'
import { now, ownerAt, type RedisBed, redisBed, timing } from '../support/redis-bed.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const CALL_MS = 166
/** How much later than a plain timer. */
const LATE_MS = 50
/** A connection that was being opened when the silence ended is given up after 2 s, and another is opened. */
const RECOVERED_WITHIN_MS = 2500

interface Silence {
  readonly what: string
  readonly begin: (server: RedisServer, bed: RedisBed) => void
  readonly end: (server: RedisServer, bed: RedisBed) => void
}

const SILENCES: readonly Silence[] = [
  { what: 'a proxy drops everything', begin: (_, bed) => bed.proxy.hole(), end: (_, bed) => bed.proxy.heal() },
  { what: 'SIGSTOP', begin: (server) => server.pause(), end: (server) => server.resume() },
]

/** When the belief ended, by the signal, and when `held` was last read to be true. */
async function endOfBelief(lease: Lease): Promise<{ abortedAt: number; lastHeldAt: number }> {
  let abortedAt = 0
  let lastHeldAt = 0
  lease.signal.addEventListener('abort', () => {
    abortedAt = now()
  })
  // Looks seldom enough that it is the lease's own timer that ends it.
  while (abortedAt === 0) {
    const readAt = now()
    if (lease.held) lastHeldAt = readAt
    await sleep(lease.remainingMs > 20 ? 10 : 30)
  }
  return { abortedAt, lastHeldAt }
}

/** Between two readings of the clock. */
function deadlineOf(lease: Lease): { earliest: number; latest: number } {
  const before = now()
  const { remainingMs } = lease
  return { earliest: before + remainingMs, latest: now() + remainingMs }
}

/** Asks until it is granted: a wait ends when the store cannot even be reached. */
async function acquireAgain(bed: RedisBed): Promise<Lease> {
  const until = now() + RECOVERED_WITHIN_MS
  for (;;) {
    try {
      return await bed.leases.acquire('k', { waitMs: RECOVERED_WITHIN_MS })
    } catch (error) {
      if (now() > until) throw error
      await sleep(20)
    }
  }
}

async function hungWhileHeld(library: ClientLibrary, silence: Silence): Promise<void> {
  const server = await redisServer()
  const ours = await redisBed(server, library)
  const others = await redisBed(server, library, { label: 'others' })
  try {
    const lease = await ours.leases.acquire('k')
    const given = await ours.leases.acquire('given back')
    await sleep(400)
    assert.ok(
      ours.events.some(({ type }) => type === 'renewed'),
      'the heartbeat was heard before',
    )
    const theirs = others.leases.acquire('k').then((lease) => ({ lease, at: now() }))
    // Where an assertion fails first, that is what is told.
    theirs.catch(() => {})
    await sleep(50)

    silence.begin(server, ours)
    const begunAt = now()
    // What was on its way has arrived by now.
    await sleep(20)
    const deadline = deadlineOf(lease)
    const calls = {
      acquire: timing(ours.leases.acquire('other', { waitMs: 0 }), CALL_MS),
      'acquire of what is held': timing(ours.leases.acquire('k', { waitMs: 0 }), CALL_MS),
      'acquire that waits': timing(ours.leases.acquire('other', { waitMs: 300 }), 300 + CALL_MS),
      inspect: timing(ours.leases.inspect('k'), CALL_MS),
      release: timing(given.release(), 2 * CALL_MS),
    }
    let plainAt = 0
    setTimeout(
      () => {
        plainAt = now()
      },
      Math.ceil(deadline.latest - now()),
    )
    const { abortedAt, lastHeldAt } = await endOfBelief(lease)

    assert.ok(abortedAt - begunAt > 300, `the belief of a TTL had ${abortedAt - begunAt} ms left in silence`)
    assert.ok(abortedAt >= deadline.earliest, `aborted ${deadline.earliest - abortedAt} ms before the deadline`)
    const late = abortedAt - Math.max(deadline.latest, plainAt)
    assert.ok(late <= LATE_MS, `aborted ${late} ms after the deadline`)
    assert.ok(lastHeldAt < deadline.latest, `believed ${lastHeldAt - deadline.latest} ms after the deadline`)
    assert.equal(lease.held, false)
    assert.equal((lease.signal.reason as { reason?: string }).reason, 'expired')
    assert.ok(ours.events.some(({ type }) => type === 'at-risk'))

    for (const [name, settled] of Object.entries(calls)) {
      const { ms, lateMs, value, error } = await settled
      assert.ok(lateMs <= LATE_MS, `${name} took ${ms} ms`)
      if (name === 'release') assert.equal(value, 'unknown')
      else assert.equal((error as { code?: string }).code, 'ERR_LEASE_UNAVAILABLE', `${name}: ${value} ${error}`)
    }
    const lost = await timing(lease.release(), 2 * CALL_MS)
    assert.equal(lost.value, 'lost')
    assert.ok(lost.lateMs <= LATE_MS, `release of what is lost took ${lost.ms} ms`)

    silence.end(server, ours)
    const next = await theirs
    assert.ok(next.at > deadline.latest, `another held ${deadline.latest - next.at} ms before the deadline`)
    assert.ok(next.lease.fence > lease.fence)
    assert.equal(await ownerAt(server, 'k'), next.lease.owner)
    await next.lease.release()

    const again = await acquireAgain(ours)
    assert.ok(again.fence > next.lease.fence)
    const renewedBefore = ours.events.filter(({ type }) => type === 'renewed').length
    await sleep(1200)
    assert.ok(again.held, 'held beyond its TTL: the heartbeat works too')
    assert.ok(ours.events.filter(({ type }) => type === 'renewed').length >= renewedBefore + 2)
    assert.equal(await again.release(), 'released')
    assert.equal(await ownerAt(server, 'k'), null)
    assert.equal(await ownerAt(server, 'other'), null, 'what was asked in vain left nothing')
  } finally {
    server.resume()
    await Promise.all([ours.end(), others.end()])
    await server.end()
  }
}

for (const silence of SILENCES) {
  // Side by side: most of the time is waiting.
  describe(`the server is silent while a lease is held: ${silence.what}`, { ...withRedis, concurrency: true }, () => {
    for (const library of CLIENTS) {
      test(`${library.name}: lost at its deadline, by nobody held before, and all is well afterwards`, () =>
        hungWhileHeld(library, silence))
    }
  })
}

/** Begins before a heartbeat and lasts two fifths of the TTL: connections that were tried meanwhile are of no use. */
async function briefSilence(library: ClientLibrary): Promise<void> {
  const server = await redisServer()
  const ours = await redisBed(server, library, { ttlMs: 3000 })
  try {
    const lease = await ours.leases.acquire('k')
    await sleep(900)
    ours.proxy.hole()
    await sleep(1200)
    ours.proxy.heal()
    assert.ok(ours.proxy.counts.lostRequestBytes > 0, 'the heartbeat was lost')
    await sleep(2000)
    assert.ok(lease.held, `${lease.signal.reason}`)
    assert.equal(await ownerAt(server, 'k'), lease.owner)
    assert.equal(await lease.release(), 'released')
  } finally {
    await ours.end()
    await server.end()
  }
}

describe('the network is silent for two fifths of the TTL', { ...withRedis, concurrency: true }, () => {
  for (const library of CLIENTS) test(`${library.name}: the lease is kept`, () => briefSilence(library))
})
