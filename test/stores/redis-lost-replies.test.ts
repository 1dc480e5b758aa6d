/** Replies that are lost or late although the script ran, seen through real sockets by every client library. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AcquireOutcome, RenewOutcome, Store } from '../../src/store.js'
import { judge } from '../support/beliefs.js'
import { now, ownerAt, type RedisBed, redisBed, timing } from '../support/redis-bed.js'
import { runRounds } from '../support/redis-rounds.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const TTL_MS = 1000
const LOCK_DELAY_MS = 300
const CALL_MS = 166
/** How much later than a plain timer. */
const LATE_MS = 50
/** For a question to the server and what comes of it. */
const ASKED_MS = 100

/** `ours` are behind the proxy that the test plays with, and have spoken already: all scripts are known. */
async function against(
  library: ClientLibrary,
  body: (server: RedisServer, ours: RedisBed, others: RedisBed) => Promise<void>,
): Promise<void> {
  const server = await redisServer()
  const ours = await redisBed(server, library, { lockDelayMs: LOCK_DELAY_MS })
  const others = await redisBed(server, library, { lockDelayMs: LOCK_DELAY_MS, label: 'others' })
  try {
    for (const { leases } of [ours, others]) await (await leases.acquire('warm')).release()
    await body(server, ours, others)
  } finally {
    await Promise.all([ours.end(), others.end()])
    await server.end()
  }
}

const unavailable = (error: unknown) => assert.equal((error as { code?: string }).code, 'ERR_LEASE_UNAVAILABLE')

/** Calls back with the owner at the server, again and again, until the time has come. */
async function watchOwner(server: RedisServer, key: string, until: number, see: (owner: string | null) => void) {
  for (; now() < until; await sleep(10)) see(await ownerAt(server, key))
}

/** The script ran, its reply is lost, and nothing more arrives: whatever stands for us must go by itself. */
const leavesGhost = (library: ClientLibrary) =>
  against(library, async (server, ours, others) => {
    ours.proxy.loseReplies()
    const sentAt = now()
    const asked = timing(ours.leases.acquire('k', { waitMs: 0 }), CALL_MS)
    await sleep(CALL_MS / 2)
    const ghost = await ownerAt(server, 'k')
    assert.ok(ghost, 'the script ran')
    ours.proxy.hole()
    const ranBefore = now()
    const { ms, lateMs, error } = await asked
    unavailable(error)
    assert.ok(lateMs <= LATE_MS, `settled after ${ms} ms`)

    const theirs = others.leases.acquire('k').then((lease) => ({ lease, at: now() }))
    theirs.catch(() => {})
    await watchOwner(server, 'k', sentAt + TTL_MS, (owner) =>
      assert.equal(owner, ghost, 'the control: it stands there'),
    )
    await sleep(ranBefore + TTL_MS + LOCK_DELAY_MS + ASKED_MS - now())
    const { lease, at } = await theirs
    assert.ok(at >= sentAt + TTL_MS + LOCK_DELAY_MS, 'nobody else before its time')
    assert.equal(await ownerAt(server, 'k'), lease.owner, 'after TTL and lock delay, no owner but the holder')
    assert.equal(await lease.release(), 'released')
    assert.equal(await ownerAt(server, 'k'), null)
  })

/** The same, but then all is well again: it is given back at once, not after a TTL. */
const givesBack = (library: ClientLibrary) =>
  against(library, async (server, ours, others) => {
    ours.proxy.loseReplies()
    const began = now()
    const asked = timing(ours.leases.acquire('k', { waitMs: 0 }), CALL_MS)
    await sleep(CALL_MS / 2)
    assert.ok(await ownerAt(server, 'k'), 'the script ran')
    unavailable((await asked).error)
    ours.proxy.heal()
    ours.proxy.cut()
    const lease = await others.leases.acquire('k', { waitMs: TTL_MS })
    assert.ok(now() - began < TTL_MS, `given back after ${now() - began} ms`)
    await sleep(began + CALL_MS + TTL_MS + LOCK_DELAY_MS + ASKED_MS - now())
    assert.deepEqual([lease.held, await ownerAt(server, 'k')], [true, lease.owner])
  })

/** The reply is lost once: the second question, with the same owner, finds the lease to be ours already. */
const asksAgain = (library: ClientLibrary) =>
  against(library, async (server, ours) => {
    ours.proxy.loseReplies()
    const asked = timing(ours.leases.acquire('k', { waitMs: TTL_MS }), 2 * CALL_MS)
    await sleep(CALL_MS / 2)
    const value = await server.send('GET', 'holdfast:lease:default:k')
    ours.proxy.heal()
    const { ms, lateMs, value: lease, error } = await asked
    assert.ok(lease, `${error}`)
    assert.ok(lateMs <= LATE_MS, `granted after ${ms} ms`)
    const [, owner, fence] = `${value}`.split(' ')
    assert.deepEqual([lease.owner, `${lease.fence}`], [owner, fence], 'the lease that the lost reply had told of')
    await sleep(TTL_MS + LOCK_DELAY_MS)
    assert.deepEqual([lease.held, await ownerAt(server, 'k')], [true, owner])
    assert.equal(await lease.release(), 'released')
  })

const LATE_REQUEST_MS = 1500
/** Of a claim that is not too late even then. */
const LONG_TTL_MS = 2000

/** Neither a late acquire, nor late renewals and a late release of a lost lease, touch who holds it meanwhile. */
const lateCommands = (library: ClientLibrary) =>
  against(library, async (server, ours, others) => {
    const lost = await ours.leases.acquire('renewed late')
    ours.proxy.delay({ requests: LATE_REQUEST_MS })
    const delayedAt = now()
    const arrived = ours.proxy.counts.requestBytes
    const asked = [
      timing(ours.leases.acquire('held by another', { waitMs: 0 }), CALL_MS),
      timing(ours.leases.acquire('free', { waitMs: 0 }), CALL_MS),
      timing(ours.leases.acquire('free for longer', { waitMs: 0, ttlMs: LONG_TTL_MS }), 2 * CALL_MS),
    ]
    const held = await others.leases.acquire('held by another')
    for (const { ms, lateMs, error } of await Promise.all(asked)) {
      unavailable(error)
      assert.ok(lateMs <= LATE_MS, `settled after ${ms} ms`)
    }
    assert.equal(ours.proxy.counts.requestBytes, arrived, 'nothing has arrived yet')

    const next = await others.leases.acquire('renewed late')
    assert.deepEqual([lost.held, next.fence > lost.fence], [false, true])
    assert.equal(await lost.release(), 'lost')
    const until = delayedAt + LATE_REQUEST_MS + 2 * CALL_MS + LONG_TTL_MS + LOCK_DELAY_MS + ASKED_MS
    let ghosts = 0
    let last: string | null = null
    await Promise.all([
      watchOwner(server, 'held by another', until, (owner) => assert.equal(owner, held.owner)),
      watchOwner(server, 'renewed late', until, (owner) => assert.equal(owner, next.owner)),
      watchOwner(server, 'free', until, (owner) => assert.equal(owner, null, 'refused: nobody could use it any more')),
      watchOwner(server, 'free for longer', until, (owner) => {
        if (owner !== null) ghosts++
        last = owner
      }),
    ])
    assert.ok(ours.proxy.counts.requestBytes > arrived, 'all of it has arrived')
    assert.deepEqual([held.held, next.held], [true, true])
    assert.ok(ghosts > 0, 'the control: what comes late within its TTL stands there for a while')
    assert.equal(last, null, 'and not beyond its TTL and lock delay')
    assert.equal(await held.release(), 'released')
    assert.equal(await next.release(), 'released')
  })

const SCENARIOS: readonly [string, (library: ClientLibrary) => Promise<void>][] = [
  ['reply lost, then silence: no hang, and no ghost beyond one TTL and its lock delay', leavesGhost],
  ['reply lost, then all is well again: the claim is given back', givesBack],
  ['reply lost once: asked again, and granted with the same owner and fence', asksAgain],
  [`commands that land ${LATE_REQUEST_MS} ms late are harmless`, lateCommands],
]

for (const [name, scenario] of SCENARIOS) {
  // Side by side: most of the time is waiting.
  describe(name, { ...withRedis, concurrency: true }, () => {
    for (const library of CLIENTS) test(library.name, () => scenario(library))
  })
}

describe('randomised rounds of delay, loss, reset and half-open connections', withRedis, () => {
  test('nobody holds together with another, fences grow, nothing stays, and all is well afterwards', async (t) => {
    const seed = `${Date.now()}`
    t.diagnostic(`seed ${seed}`)
    const { overlaps, fencesOutOfOrder, ghosts, stuck, ...result } = await runRounds({ seed, rounds: 40, lanes: 5 })
    t.diagnostic(JSON.stringify(result))
    const wrong = { overlaps, fencesOutOfOrder, ghosts, stuck }
    assert.deepEqual(wrong, { overlaps: [], fencesOutOfOrder: [], ghosts: [], stuck: [] }, `seed ${seed}`)
    assert.equal(result.rounds, 40)
    assert.ok(result.beliefs > 2 * 40, 'the key changed hands under faults too')
    assert.ok(result.lost > 0 && result.unavailable > 0, 'the faults were felt')
  })

  test('control: holders that believe for longer than they were granted are found out', async (t) => {
    const result = await runRounds({
      seed: `${Date.now()}`,
      rounds: 40,
      lanes: 5,
      onlySilence: true,
      wrap: believedTooLong,
      enough: ({ overlaps }) => overlaps.length > 0,
    })
    t.diagnostic(`found in ${result.rounds} rounds: ${result.overlaps[0]}`)
    assert.ok(result.overlaps.length > 0, 'not found in 40 rounds')
  })

  test('control: the judge sees an overlap of a microsecond, a long one behind a short one, and a fence too low', () => {
    const belief = (who: string, fence: bigint, from: number, until: number, key = 'k') => ({
      ...{ key, who, fence, from, until },
    })
    const well = [belief('b', 2n, 20, 30), belief('a', 1n, 10, 20), belief('c', 3n, 31, 40)]
    assert.deepEqual(judge(well), { overlaps: [], fencesOutOfOrder: [] })
    assert.deepEqual(judge([...well, belief('x', 1n, 10, 40, 'another key')]), { overlaps: [], fencesOutOfOrder: [] })
    assert.equal(judge([belief('a', 1n, 10, 20.001), belief('b', 2n, 20, 30)]).overlaps.length, 1)
    const within = [belief('a', 1n, 10, 100), belief('b', 2n, 20, 30), belief('c', 3n, 40, 50)]
    assert.equal(judge(within).overlaps.length, 2)
    assert.equal(judge([belief('a', 2n, 10, 20), belief('b', 2n, 20, 30)]).fencesOutOfOrder.length, 1)
  })
})

/** A store whose grants are believed for five times as long as they last. */
function believedTooLong(store: Store): Store {
  const stretched = <O extends AcquireOutcome | RenewOutcome>(outcome: O): O =>
    'ttlMs' in outcome ? { ...outcome, ttlMs: outcome.ttlMs * 5 } : outcome
  return {
    name: store.name,
    traits: store.traits,
    acquire: async (claim, call) => stretched(await store.acquire(claim, call)),
    renew: async (held, call) => stretched(await store.renew(held, call)),
    release: (ref, call) => store.release(ref, call),
    inspect: (key, call) => store.inspect(key, call),
    probe: (call) => store.probe(call),
    close: () => store.close(),
  }
}
