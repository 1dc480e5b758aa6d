/** Answers of a real Redis server that are lost or late: nobody is left in possession of what nobody knows of. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Leases, LeasesOptions } from '../../src/index.js'
import { now, ownerAt, type RedisBed, redisBed } from '../support/redis-bed.js'
import { acquireSoon, type RedisStage, redisStage } from '../support/redis-stage.js'
import { withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

const KEY = 'holdfast:lease:default:k'
const UNAVAILABLE = { code: 'ERR_LEASE_UNAVAILABLE' }

interface Scene {
  readonly stage: RedisStage
  /** Behind a proxy. */
  readonly bed: RedisBed
  readonly others: Leases
}

async function scene(t: TestContext, options: LeasesOptions = {}, library = CLIENTS[1]): Promise<Scene> {
  const stage = await redisStage(t)
  const bed = await redisBed(stage.server, library as ClientLibrary, { ttlMs: 3000, ...options })
  stage.atEnd(() => bed.end())
  const others = await stage.leases()
  // Connected, and the scripts known: what is lost before that never ran.
  const first = await acquireSoon(bed.leases, 'first', { heartbeat: false })
  await first.renew()
  await first.release()
  return { stage, bed, others }
}

// Each has servers of its own, and waits most of the time.
describe('answers that are lost or late', { ...withRedis, concurrency: 4 }, () => {
  for (const library of CLIENTS) {
    test(`B060: ${library.name}: the acquire ran and its answer was lost, TTL 30 s: free again within moments, for us and for others`, async (t) => {
      const { stage, bed, others } = await scene(t, { ttlMs: 30_000, callTimeoutMs: 1000 }, library)
      for (const next of [bed.leases, others]) {
        // It may have been released already: its fence stays.
        const fence = () => stage.server.send('GET', 'holdfast:fence')
        const before = await fence()
        bed.proxy.loseReplies()
        await assert.rejects(bed.leases.acquire('k', { waitMs: 0 }), UNAVAILABLE)
        assert.notEqual(await fence(), before, 'it did run')
        bed.proxy.heal()
        const began = now()
        const lease = await acquireSoon(next, 'k')
        assert.ok(now() - began < 10_000, `${now() - began} ms`)
        assert.equal(await lease.release(), 'released')
      }
    })
  }

  test('B131: whatever instant a wait ends or is cancelled at, the key is free for the next one after it failed', async (t) => {
    const { stage, bed, others } = await scene(t)
    bed.proxy.delay(1)
    let failed = 0
    let granted = 0
    const round = async (key: string, n: number) => {
      const holder = await others.acquire(key)
      const cancel = new AbortController()
      const isCancelled = n % 2 === 0
      const waiting = bed.leases.acquire(key, { waitMs: isCancelled ? 3000 : 40, signal: cancel.signal })
      const settled = waiting.then(
        (lease) => ({ lease }),
        () => ({ lease: null }),
      )
      // Around the moment at which the wait ends: a few ms before it to a few after it.
      setTimeout(() => void holder.release(), 37 + (n % 7))
      if (isCancelled) setTimeout(() => cancel.abort(), 40)
      const { lease } = await settled
      await holder.release()
      if (lease) {
        granted++
        assert.equal(await ownerAt(stage.server, key), lease.owner)
        await lease.release()
      } else {
        failed++
        // What was on its way has arrived, and was given back: free, not after the TTL but now.
        const next = await others.acquire(key, { waitMs: 1000 })
        await next.release()
      }
    }
    await Promise.all(
      Array.from({ length: 8 }, async (_, row) => {
        for (let n = 0; n < 50; n++) await round(`k ${row}`, n + row)
      }),
    )
    assert.ok(failed > 20 && granted > 20, `${failed} failed, ${granted} granted: both were there to see`)
  })

  test('B173: a request that arrives after its caller has given up is given back, and nobody waits for a TTL', async (t) => {
    const { stage, bed, others } = await scene(t)
    for (const how of ['cancelled', 'timed out'] as const) {
      bed.proxy.delay({ requests: 700 })
      const cancel = new AbortController()
      const began = now()
      const waiting = bed.leases.acquire('k', { waitMs: how === 'cancelled' ? 5000 : 0, signal: cancel.signal })
      if (how === 'cancelled') setTimeout(() => cancel.abort(), 50)
      await assert.rejects(waiting)
      assert.ok(now() - began < 700, 'it settled long before')
      assert.equal(await ownerAt(stage.server, 'k'), null)
      await sleep(Math.max(0, began + 680 - now()))
      bed.proxy.heal()
      await sleep(100)
      const lease = await others.acquire('k', { waitMs: 1000 })
      assert.equal(await lease.release(), 'released')
    }
  })

  for (const library of CLIENTS) {
    test(`B198: ${library.name}: a renewal that ran although its answer was lost is no loss; nor is a release`, async (t) => {
      const { stage, bed } = await scene(t, {}, library)
      const lease = await bed.leases.acquire('k', { heartbeat: false })
      await stage.server.send('PEXPIRE', KEY, 2000)
      bed.proxy.loseReplies()
      await assert.rejects(lease.renew(), UNAVAILABLE)
      assert.ok(Number(await stage.server.send('PTTL', KEY)) > 2000, 'it did run')
      bed.proxy.heal()
      for (
        let round = 0;
        round < 50 &&
        !(await lease.renew().then(
          () => true,
          () => false,
        ));
        round++
      )
        await sleep(20)
      await lease.renew()
      assert.ok(lease.held)
      assert.equal(await ownerAt(stage.server, 'k'), lease.owner)

      bed.proxy.loseReplies()
      const releasing = lease.release()
      await sleep(50)
      assert.equal(await ownerAt(stage.server, 'k'), null, 'it did run')
      bed.proxy.heal()
      assert.notEqual(await releasing, 'lost')
    })
  }

  test('B043: the server is paused during an acquire: the call fails in time, and nothing is renewed or kept afterwards', async (t) => {
    const { stage, bed } = await scene(t, { ttlMs: 1500 })
    await stage.server.send('CLIENT', 'PAUSE', 700)
    await assert.rejects(bed.leases.acquire('k', { waitMs: 100 }), UNAVAILABLE)
    await sleep(700)
    const until = now() + 2000
    let seen = 0
    while (now() < until) {
      const left = Number(await stage.server.send('PTTL', KEY))
      if (left > 0) seen++
      assert.ok(left <= 1500)
      await sleep(20)
    }
    assert.equal(await stage.server.send('GET', KEY), null)
    assert.ok(seen * 20 < 1500, `it stayed for ${seen * 20} ms`)
    assert.equal(
      bed.events.filter(({ type, key }) => key === 'k' && (type === 'renewed' || type === 'acquired')).length,
      0,
    )
  })

  test('B172: a release that the connection took with it is asked again in the background: the next one does not wait for the TTL', async (t) => {
    const { stage, bed, others } = await scene(t, { ttlMs: 20_000 })
    for (const lost of ['the question', 'the answer']) {
      const lease = await bed.leases.acquire('k')
      if (lost === 'the question') bed.proxy.hang()
      else bed.proxy.loseReplies()
      const releasing = lease.release()
      await sleep(20)
      bed.proxy.cut()
      bed.proxy.heal()
      assert.match(await releasing, /released|unknown/)
      const next = await others.acquire('k', { waitMs: 2000 })
      assert.equal(await next.release(), 'released')
    }
    assert.equal(await stage.server.send('GET', KEY), null)
  })
})
