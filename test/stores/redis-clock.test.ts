/** The server's wall clock, by which leases end there, is stepped by an hour. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { redisStore } from '../../src/stores/redis.js'
import { now, ownerAt, type RedisBed, redisBed, timing } from '../support/redis-bed.js'
import { Diary, endOfBelief } from '../support/redis-belief.js'
import { type RedisServer, redisServer, withRedisClock } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const HOUR_MS = 3_600_000
const TTL_MS = 1000
const WAIT_MS = TTL_MS + 1000
const AT_ONCE_MS = 100
const [LIBRARY = assert.fail('no client library')] = CLIENTS

async function playing(
  play: (
    server: RedisServer,
    bed: (diary?: Diary | null, trustRestart?: boolean) => Promise<RedisBed>,
  ) => Promise<void>,
): Promise<void> {
  const server = await redisServer({ clock: true })
  const beds: RedisBed[] = []
  try {
    await play(server, async (diary, trustRestart = true) => {
      const observe = diary && { observe: diary.observe }
      const bed = await redisBed(server, LIBRARY, {
        ttlMs: TTL_MS,
        // Not what is measured here, and short of time on a loaded machine.
        callTimeoutMs: TTL_MS / 2,
        store: { maxTtlMs: TTL_MS, trustRestart },
        ...observe,
      })
      beds.push(bed)
      return bed
    })
  } finally {
    await Promise.all(beds.map((bed) => bed.end()))
    await server.end()
  }
}

/** A grant of a key that is free: at the first question, in no time. */
async function grantedAtOnce({ leases }: RedisBed, key: string) {
  const { lateMs, value, error } = await timing(leases.acquire(key, { waitMs: 0 }), AT_ONCE_MS)
  assert.ok(value, `${error}`)
  assert.ok(lateMs < 400, `granted ${lateMs} ms too late`)
  return value
}

describe('the wall clock of the server is stepped', { ...withRedisClock, concurrency: 3 }, () => {
  test('B079: an hour forward while held: leases end at once, their holders learn it with the next renewal, fences grow', () =>
    playing(async (server, bed) => {
      const [one, other] = [await bed(), await bed()]
      const gone = await one.leases.acquire('gone')
      await grantedAtOnce(other, 'other')
      const taken = await one.leases.acquire('taken', { heartbeat: false })
      const belief = endOfBelief(gone)
      server.stepClock(HOUR_MS)
      const steppedAt = now()
      const next = await grantedAtOnce(other, 'taken')
      // The reason why the page of the store says to slew a clock, not to step it.
      assert.ok(taken.held, 'two believe until the first one renews')
      assert.ok(next.fence > taken.fence)
      assert.equal(await ownerAt(server, 'gone'), null)
      await assert.rejects(taken.renew(), { code: 'ERR_LEASE_LOST', reason: 'taken' })
      const ofGone = await belief
      assert.equal(ofGone.reason, 'missing')
      assert.ok(ofGone.lastHeldAt - steppedAt < TTL_MS / 3 + 300, `believed for ${ofGone.lastHeldAt - steppedAt} ms`)

      const again = await grantedAtOnce(one, 'gone')
      assert.ok(again.fence > next.fence)
      await sleep(2 * TTL_MS)
      assert.ok(again.held && next.held, 'by the new time all goes on as before')
    }))

  test('an hour back: who lives renews, who has died keeps the key until it is revoked, fences grow', () =>
    playing(async (server, bed) => {
      const diary = new Diary()
      const [one, other] = [await bed(), await bed(diary)]
      const alive = await one.leases.acquire('alive')
      const dying = await bed()
      const dead = await dying.leases.acquire('dead')
      dying.proxy.hole()
      server.stepClock(-HOUR_MS)
      const fresh = await grantedAtOnce(other, 'fresh')
      assert.ok(fresh.fence > dead.fence, 'its clock went back, the fence did not')
      await sleep(2 * TTL_MS)
      assert.ok(alive.held && fresh.held && !dead.held)

      await assert.rejects(other.leases.acquire('dead', { waitMs: 0 }), { code: 'ERR_LEASE_HELD' })
      const { retryAfterMs = 0 } = diary.attempts('dead')[0] ?? {}
      assert.ok(Math.abs(retryAfterMs - HOUR_MS) < 2 * WAIT_MS, `its waiters were told ${retryAfterMs} ms`)
      const released = grantedAfter(other, 'alive')
      await sleep(50)
      assert.equal(await alive.release(), 'released')
      assert.ok((await released).fence > fresh.fence, 'a release is told as ever')

      assert.equal((await other.leases.revoke('dead', { force: true })).kind, 'freed')
      const next = await grantedAtOnce(other, 'dead')
      assert.ok(next.fence > fresh.fence)
    }))

  for (const [what, byMs] of [
    ['ahead of', HOUR_MS],
    ['behind', -HOUR_MS],
  ] as const) {
    test(`started with a clock an hour ${what} ours: its uptime counts for nothing, what was watched does`, () =>
      playing(async (server, bed) => {
        const before = await grantedAtOnce(await bed(), 'k')
        await server.kill()
        server.stepClock(byMs)
        await server.start({ empty: true })
        // Old enough, and yet not believed.
        await sleep(WAIT_MS + 100)
        const diary = new Diary()
        const careful = await bed(diary, false)
        const beganAt = now()
        const lease = await careful.leases.acquire('k', { waitMs: 3 * WAIT_MS })
        const waitedMs = now() - beganAt
        assert.ok(waitedMs >= WAIT_MS && waitedMs < WAIT_MS + 500, `waited for ${waitedMs} ms`)
        const why = diary.attempts('k')[0]?.why ?? ''
        assert.match(
          why,
          new RegExp(`^when it started is not sure \\(its clock is 3(600|599) s ${what} ours\\), and it keeps no log`),
        )
        // Its counter is lost as well as its time: this is what makes its fences volatile.
        assert.equal(lease.fence > before.fence, byMs > 0)
        const another = await careful.leases.acquire('another', { waitMs: 0 })
        assert.ok(another.fence > lease.fence)
      }))

    test(`stepped ${byMs > 0 ? 'forward' : 'back'} while young: nothing is granted sooner`, () =>
      playing(async (server, bed) => {
        const diary = new Diary()
        const [watching, late] = [await bed(diary, false), await bed(null, false)]
        const startedAt = now()
        const waiting = watching.leases.acquire('k', { waitMs: 3 * WAIT_MS }).then(() => now() - startedAt)
        waiting.catch(() => {})
        while (diary.attempts('k').length === 0) await sleep(10)
        assert.equal(diary.attempts('k')[0]?.outcome, 'not-ready')
        server.stepClock(byMs)
        await sleep(200)
        const doubt = byMs > 0 ? /\(its clock is 3(600|599) s ahead of ours\)/ : /\(its clock was moved\)/
        const refused = { code: 'ERR_LEASE_NOT_READY', message: doubt }
        const seenAt = now()
        await assert.rejects(late.leases.acquire('other', { waitMs: 0 }), refused)
        const waitedMs = await waiting
        assert.ok(waitedMs >= TTL_MS && waitedMs < WAIT_MS + 500, `granted after ${waitedMs} ms`)
        await late.leases.acquire('other', { waitMs: 2 * WAIT_MS })
        assert.ok(now() - seenAt >= WAIT_MS, 'who came later counts from when it came')
      }))
  }

  test('probe says how far apart the clocks are', () =>
    playing(async (server) => {
      server.stepClock(HOUR_MS)
      const client = await LIBRARY.open({ port: server.port, connect: false })
      const store = redisStore(client)
      const { findings } = await store.probe({ signal: new AbortController().signal })
      await store.close()
      LIBRARY.close(client)
      const told = findings.find(({ message }) => message.includes('apart'))
      assert.equal(told?.level, 'warning')
      assert.match(told?.message ?? '', /its clock and ours are 3[56]\d{5} ms apart; keep both with NTP/)
    }))
})

/** A grant that is waited for. */
const grantedAfter = ({ leases }: RedisBed, key: string) => leases.acquire(key, { waitMs: 2000 })
