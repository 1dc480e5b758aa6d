/** Nobody touches the lease of another: several stores, each with connections of its own, on one Redis server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '../../src/index.js'
import { plainClaim } from '../support/claims.js'
import { now, ownerAt, redisBed } from '../support/redis-bed.js'
import { redisStage } from '../support/redis-stage.js'
import { withRedis } from '../support/servers/redis.js'
import { CLIENTS, type ClientLibrary } from '../support/servers/redis-clients.js'

/** Of its own for each call: Node warns of many listeners on one. */
const call = () => ({ signal: new AbortController().signal })
const KEY = 'holdfast:lease:default:k'
test(
  'B025: a release whose answer is late, or of one that expired, does not touch the lease taken meanwhile',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const bed = await redisBed(stage.server, CLIENTS[0] as ClientLibrary, { ttlMs: 3000 })
    stage.atEnd(() => bed.end())
    const others = await stage.leases()
    const first = await bed.leases.acquire('k')
    bed.proxy.delay({ replies: 200 })
    const releasing = first.release()
    const second = await others.acquire('k')
    assert.equal(await releasing, 'released')
    assert.ok(second.held)
    assert.equal(await ownerAt(stage.server, 'k'), second.owner)
    bed.proxy.heal()
    await second.release()

    const expired = await bed.leases.acquire('k', { ttlMs: 600, heartbeat: false })
    const third = await others.acquire('k')
    assert.equal(await expired.release(), 'lost')
    await sleep(50)
    assert.equal(await ownerAt(stage.server, 'k'), third.owner)
    await third.release()
  },
)

test('B039: one label for two is two owners all the same', withRedis, async (t) => {
  const stage = await redisStage(t)
  const [one, two] = [await stage.leases({}, { label: 'we' }), await stage.leases({}, { label: 'we' })]
  const lease = await one.acquire('k')
  assert.equal(await two.tryAcquire('k'), null)
  await two.close()
  assert.equal(await ownerAt(stage.server, 'k'), lease.owner)
  await lease.renew()
  assert.equal(await lease.release(), 'released')
})

test(
  'B073: released by other code than acquired it, and in the listener that hears of its loss',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const leases = await stage.leases()
    const queue: Lease[] = [await leases.acquire('k')]
    assert.equal(await queue.shift()?.release(), 'released')
    const lease = await leases.acquire('k')
    const released = new Promise((resolve) => lease.signal.addEventListener('abort', () => resolve(lease.release())))
    await (await stage.leases()).revoke('k', { force: true })
    assert.equal(await released, 'lost')
  },
)

test(
  'B090: twenty who lose, again and again, do not keep the key of a dead holder for a moment longer',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const holder = await stage.store()
    const began = now()
    await holder.acquire(plainClaim('dead'), call())
    const others = await Promise.all(Array.from({ length: 5 }, () => stage.leases({}, { ttlMs: 5000 })))
    const won: { lease: Lease; at: number }[] = []
    let asked = 0
    const ask = async (n: number) => {
      while (won.length === 0 && now() - began < 5000) {
        const lease = await others[n % 5]?.tryAcquire('k')
        asked++
        if (lease) return void won.push({ lease, at: now() - began })
        await sleep(20)
      }
    }
    await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n)))
    assert.equal(won.length, 1)
    assert.ok(asked > 60, `${asked} questions`)
    const { at = 0, lease } = won[0] ?? {}
    // Had those who lose prolonged it, it would not be free as long as they ask.
    assert.ok(at >= 999 && at < 1500, `free after ${at} ms`)
    await lease?.release()
  },
)

test(
  'B092 B096: a crowd on few keys while short leases expire and are listed: no living one is touched, one grant at a time',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const parties = await Promise.all(Array.from({ length: 4 }, () => stage.party({}, { ttlMs: 10_000 })))
    const [all, stores] = [parties.map(({ leases }) => leases), parties.map(({ store }) => store)]
    const [first] = all
    const living = await Promise.all(Array.from({ length: 200 }, (_, n) => all[n % 4]?.acquire(`living ${n}`)))
    for (let round = 0; round < 10; round++) {
      const dying = Array.from({ length: 200 }, (_, n) =>
        stores[n % 4]?.acquire(
          plainClaim('dying', { key: { namespace: 'default', name: `dying ${round} ${n}` }, ttlMs: 400 }),
          call(),
        ),
      )
      const asked = await Promise.all(Array.from({ length: 100 }, (_, n) => all[n % 4]?.tryAcquire('one')))
      const got = asked.filter((lease) => lease)
      assert.equal(got.length, 1)
      await Promise.all([...got.map((lease) => lease?.release()), ...dying])
      let listed = 0
      for await (const { key } of first?.list('living') ?? []) listed += key ? 1 : 0
      assert.equal(listed, 200)
    }
    for (const lease of living) assert.equal(await ownerAt(stage.server, lease?.key ?? ''), lease?.owner)
    await Promise.all(living.map((lease) => lease?.release()))
  },
)

test(
  'B150: at the moment of expiry exactly one of many has the key, and who asked long before takes nothing',
  withRedis,
  async (t) => {
    const stage = await redisStage(t)
    const stores = await Promise.all(Array.from({ length: 16 }, () => stage.store()))
    for (let round = 0; round < 20; round++) {
      await stores[0]?.acquire(plainClaim('first', { ttlMs: 60 }), call())
      // Until right before its end: the first of these find it held, the last of these do not.
      await sleep(50)
      const granted: string[] = []
      const ask = async (n: number) => {
        for (let i = 0; i < 30 && granted.length === 0; i++) {
          const outcome = await stores[n]?.acquire(plainClaim(`${round}-${n}`, { ttlMs: 5000 }), call())
          if (outcome?.kind === 'granted') granted.push(`${round}-${n}`)
          else await sleep(1)
        }
      }
      await Promise.all(stores.map((_, n) => ask(n)))
      assert.equal(granted.length, 1)
      assert.equal(await ownerAt(stage.server, 'k'), granted[0])
      await stage.server.send('DEL', KEY)
    }

    const late = await redisBed(stage.server, CLIENTS[4] as ClientLibrary, { ttlMs: 3000 })
    stage.atEnd(() => late.end())
    await late.leases.inspect('k')
    late.proxy.delay({ requests: 200 })
    const asking = late.leases.tryAcquire('k')
    const winner = await (await stage.leases()).acquire('k')
    assert.equal(await asking, null)
    assert.equal(await ownerAt(stage.server, 'k'), winner.owner)
    await winner.release()
  },
)

test('B188: the TTL of the holder decides, not that of who asks', withRedis, async (t) => {
  const stage = await redisStage(t)
  const lease = await (await stage.leases()).acquire('k', { ttlMs: 2000, heartbeat: false })
  const impatient = await stage.leases({}, { ttlMs: 300 })
  await assert.rejects(impatient.acquire('k', { waitMs: 1200 }), { code: 'ERR_LEASE_HELD' })
  assert.equal(await ownerAt(stage.server, 'k'), lease.owner)
  assert.equal(await lease.release(), 'released')
})

test('B224: the release of one who overran its TTL does not free the next holder', withRedis, async (t) => {
  const stage = await redisStage(t)
  const late = await (await stage.leases()).acquire('k', { ttlMs: 600, heartbeat: false })
  const next = await (await stage.leases()).acquire('k')
  assert.equal(await late.release(), 'lost')
  await assert.rejects(late.renew(), { code: 'ERR_LEASE_LOST' })
  await next.renew()
  assert.equal(await ownerAt(stage.server, 'k'), next.owner)
  await next.release()
})

test('B226: nobody gets in while a lease is renewed, with fifty contenders', withRedis, async (t) => {
  const stage = await redisStage(t)
  const lease = await (await stage.leases()).acquire('k', { ttlMs: 1500, heartbeat: false })
  const others = await Promise.all(Array.from({ length: 5 }, () => stage.leases()))
  let over = false
  const contend = async (n: number) => {
    for (; !over; await sleep(10)) assert.equal(await others[n % 5]?.tryAcquire('k'), null)
  }
  const contenders = Promise.all(Array.from({ length: 50 }, (_, n) => contend(n)))
  for (let i = 0; i < 80; i++) {
    await lease.renew()
    await sleep(10)
  }
  over = true
  await contenders
  assert.equal(await lease.release(), 'released')
})
