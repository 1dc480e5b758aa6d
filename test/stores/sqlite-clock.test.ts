import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Environment, systemEnvironment } from '../../src/environment.js'
import type { Claim, Store } from '../../src/store.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { type Actor, type ActorOptions, claim, stage } from '../support/sqlite-actors.js'
import { faketime, privileged, withFaketime } from '../support/sqlite-hosts.js'
import { count } from '../support/sqlite-raw.js'
import { hostNow } from '../support/sqlite-scenarios.js'

const call = () => ({ signal: new AbortController().signal })
const lasting = (over: Parameters<typeof claim>[0] = {}) => claim({ life: 'outlives-process', ...over })
/** How long a stranger has to watch a lease of this term. */
const watched = (term: number) => term * 1.02 + 50

/** A host with a clock of our own making. */
class Host {
  at: number
  readonly environment: Environment
  constructor(identity: string | null, at = 1_000_000) {
    this.at = at
    this.environment = { ...systemEnvironment(), host: { identity, now: () => this.at } }
  }
}

async function hosts(play: (path: string, open: (host: Host) => Store) => Promise<void>): Promise<void> {
  await stage(async (folder) => {
    const stores: Store[] = []
    const open = (host: Host) => {
      const store = sqliteStore({ path: `${folder}/leases.db`, environment: host.environment })
      stores.push(store)
      return store
    }
    try {
      await play(`${folder}/leases.db`, open)
    } finally {
      await Promise.all(stores.map((store) => store.close()))
    }
  })
}

const kind = async (store: Store, over: Claim = lasting()) => (await store.acquire(over, call())).kind
const retryAfter = async (store: Store, over = lasting()) => {
  const outcome = await store.acquire(over, call())
  assert.equal(outcome.kind, 'held')
  return outcome.kind === 'held' ? outcome.retryAfterMs : undefined
}

test('B110, B193: one clock: a lease ends at its very millisecond, and a record long dead is taken at once', async () => {
  await hosts(async (_, open) => {
    const host = new Host('one')
    const [a, b] = [open(host), open(host)]
    await a.acquire(lasting({ ttlMs: 1_000, lockDelayMs: 500 }), call())
    host.at += 1_499
    assert.equal(await retryAfter(b), 1)
    host.at += 1
    assert.equal(await kind(b), 'granted')
    host.at += 1e9
    assert.equal(await kind(a), 'granted')
  })
})

test('another clock: taken over after watching one version for its whole term, and not before', async () => {
  await hosts(async (path, open) => {
    // Their clocks have nothing in common, so that comparing them would free the lease at once, or never.
    for (const [name, at] of [
      ['ahead', 9e9],
      ['behind', 5],
    ] as const) {
      const [here, there] = [new Host('here'), new Host('there', at)]
      const [holder, contender] = [open(here), open(there)]
      await holder.acquire(lasting({ name, ttlMs: 1_000, lockDelayMs: 500 }), call())
      const ask = lasting({ name, ttlMs: 100 })
      assert.equal(await retryAfter(contender, ask), watched(1_500))
      there.at += 1_000
      assert.equal(await retryAfter(contender, ask), watched(1_500) - 1_000)
      there.at += watched(500) - 1
      assert.equal(await kind(contender, ask), 'held')
      there.at += 21
      assert.equal(count(path, 'holdfast_sightings', name), 1)
      assert.equal(await kind(contender, ask), 'granted')
      assert.equal(count(path, 'holdfast_sightings', name), 0, 'the sighting went with the row')
    }
  })
})

test('another clock: a renewal is another version, and watching begins anew', async () => {
  await hosts(async (path, open) => {
    const [here, there] = [new Host('here'), new Host('there', 77)]
    const [holder, contender] = [open(here), open(there)]
    const held = lasting({ ttlMs: 1_000 })
    const grant = await holder.acquire(held, call())
    assert.ok(grant.kind === 'granted')
    for (let i = 0; i < 5; i++) {
      assert.equal(await kind(contender), 'held')
      there.at += 900
      here.at += 300
      assert.equal((await holder.renew({ ...held, fence: grant.fence }, call())).kind, 'renewed')
    }
    assert.equal(await retryAfter(contender), watched(1_000))
    assert.equal(count(path, 'holdfast_sightings'), 1)
    there.at += watched(1_000)
    const taken = await contender.acquire(lasting(), call())
    assert.ok(taken.kind === 'granted' && taken.fence > grant.fence)
    assert.deepEqual(await holder.renew({ ...held, fence: grant.fence }, call()), { kind: 'lost', reason: 'taken' })
  })
})

test('another clock: those who come and go go on counting; another boot counts for itself', async () => {
  await hosts(async (_, open) => {
    const [here, there, elsewhere] = [new Host('here'), new Host('there', 77), new Host('elsewhere', 5e6)]
    await open(here).acquire(lasting({ ttlMs: 1_000 }), call())
    for (let i = 0; i < 10; i++) {
      const visitor = open(there)
      assert.equal(await kind(visitor), 'held')
      await visitor.close()
      there.at += watched(1_000) / 10
      elsewhere.at += 5
      assert.equal(await kind(open(elsewhere)), 'held')
    }
    assert.equal(await kind(open(there)), 'granted')
  })
})

test('another clock: a minimal hold and a kept key are watched to their ends, too', async () => {
  await hosts(async (_, open) => {
    const [here, there] = [new Host('here'), new Host('there', 77)]
    const [holder, contender] = [open(here), open(there)]
    const held = lasting({ ttlMs: 100, minHoldMs: 5_000 })
    await holder.acquire(held, call())
    assert.equal(await retryAfter(contender), watched(5_000))
    await holder.release(held, { ...call(), keepMs: 700 })
    assert.equal(await retryAfter(contender), watched(700))
    there.at += watched(700)
    assert.equal(await kind(contender), 'granted')
  })
})

test('nobody can share a clock: each process watches for itself, and understands its own leases', async () => {
  await hosts(async (path, open) => {
    const [here, there] = [new Host(null), new Host(null)]
    const [holder, contender] = [open(here), open(there)]
    await holder.acquire(lasting({ ttlMs: 1_000 }), call())
    assert.equal(await retryAfter(holder), 1_000)
    assert.equal(await retryAfter(contender), watched(1_000))
    there.at += watched(1_000) - 1
    assert.equal(await retryAfter(open(there)), watched(1_000), 'a new process begins anew')
    assert.equal(count(path, 'holdfast_sightings'), 0)
    assert.equal(await kind(contender), 'held')
    there.at += 1
    assert.equal(await kind(contender), 'granted')
  })
})

test('a clock that went back (a machine restored from a snapshot) neither frees nor prolongs', async () => {
  await hosts(async (_, open) => {
    const [here, there] = [new Host('one', 5e6), new Host('two', 5e6)]
    const store = open(here)
    await store.acquire(lasting({ name: 'own', ttlMs: 1_000 }), call())
    await open(there).acquire(lasting({ name: 'foreign', ttlMs: 1_000 }), call())
    assert.equal(await kind(store, lasting({ name: 'foreign' })), 'held')
    here.at = 10
    for (const name of ['own', 'foreign']) assert.equal(await retryAfter(store, lasting({ name })), watched(1_000))
    here.at += watched(1_000)
    for (const name of ['own', 'foreign']) assert.equal(await kind(store, lasting({ name })), 'granted')
  })
})

test('B188: the TTL of the holder decides, on one clock and on two', async () => {
  await hosts(async (_, open) => {
    const [here, there] = [new Host('here'), new Host('there', 77)]
    const [holder, neighbour, stranger] = [open(here), open(here), open(there)]
    await holder.acquire(lasting({ ttlMs: 30_000 }), call())
    assert.equal(await kind(stranger, lasting({ ttlMs: 100 })), 'held')
    here.at += 12_000
    there.at += 12_000
    for (const store of [neighbour, stranger]) assert.equal(await kind(store, lasting({ ttlMs: 100 })), 'held')
  })
})

/** A contender that is not of this host, in its eyes: what it must be told, and how long it must watch. */
const strangers: [string, ActorOptions | ((folder: string) => ActorOptions)][] = [
  [
    'another boot id',
    (folder) => {
      writeFileSync(`${folder}/boot_id`, '11111111-2222-3333-4444-555555555555\n')
      return {
        through: ['unshare', '--mount'],
        before: `mount --bind ${folder}/boot_id /proc/sys/kernel/random/boot_id`,
      }
    },
  ],
  [
    'another time namespace, ahead',
    { through: ['unshare', '-T', '--boottime', '100000', '--monotonic', '100000', '--fork', '--kill-child'] },
  ],
]

for (const [what, how] of strangers) {
  test(
    `${what}: never two holders, and take-over after watching the TTL, also by contenders that come and go`,
    privileged,
    async () => {
      await stage(async (folder, actor) => {
        const options = typeof how === 'function' ? how(folder) : how
        const ttlMs = 700
        const holder = await actor()
        const held = lasting({ ttlMs })
        const grant = await holder.acquire(held)
        assert.ok(grant.kind === 'granted')
        const { identity } = await holder.about()
        // While it is renewed nobody gets it, however many come.
        for (let i = 0; i < 4; i++) {
          const visitor = await actor(options)
          assert.notEqual((await visitor.about()).identity, identity)
          assert.equal((await visitor.acquire(lasting())).kind, 'held')
          assert.equal((await holder.renew({ ...held, fence: grant.fence })).kind, 'renewed')
          await visitor.kill()
        }
        const lastRenewed = hostNow()
        await holder.kill()
        let firstLook = Number.POSITIVE_INFINITY
        for (;;) {
          const visitor = await actor(options)
          const outcome = await visitor.acquire(lasting())
          firstLook = Math.min(firstLook, hostNow())
          await visitor.kill()
          if (outcome.kind === 'granted') break
        }
        const now = hostNow()
        assert.ok(now - lastRenewed >= ttlMs, 'taken from a holder that could still believe')
        assert.ok(now - firstLook < watched(ttlMs) + 500, `taken over ${now - firstLook} ms after the first look`)
      })
    },
  )
}

test('an invented /proc/uptime changes nothing', privileged, async () => {
  await stage(async (folder, actor) => {
    writeFileSync(`${folder}/uptime`, '12.34 56.78\n')
    const options = { through: ['unshare', '--mount'], before: `mount --bind ${folder}/uptime /proc/uptime` }
    const [holder, contender] = [await actor(options), await actor()]
    await keepsToTime(holder, contender)
    const [other, liar] = [await actor(), await actor(options)]
    await keepsToTime(other, liar)
  })
})

for (const step of ['+1h', '-1h']) {
  test(`a wall clock that is ${step} off neither frees nor prolongs, and fences grow`, withFaketime, async () => {
    await stage(async (_, actor) => {
      const [holder, contender] = [
        await actor(),
        await actor({ env: { LD_PRELOAD: faketime ?? '', FAKETIME: step, DONT_FAKE_MONOTONIC: '1' } }),
      ]
      const apart = ((await contender.about()).wall - (await holder.about()).wall) / 60_000
      assert.ok(Math.abs(apart) > 59, `the control: ${apart} minutes apart`)
      await keepsToTime(holder, contender)
      await keepsToTime(contender, holder)
    })
  })
}

/** Refused until the TTL has passed, granted then, with a greater fence. */
async function keepsToTime(holder: Actor, contender: Actor): Promise<void> {
  const held = lasting({ ttlMs: 400 })
  const grant = await holder.acquire(held)
  assert.ok(grant.kind === 'granted')
  const asked = hostNow()
  const next = lasting()
  const taken = await contender.obtain(next)
  assert.ok(taken.at >= asked + 400 - 60, `taken after ${taken.at - asked} ms`)
  assert.ok(taken.at <= asked + 400 + 250, `taken after ${taken.at - asked} ms`)
  assert.ok(taken.fence > grant.fence)
  await contender.release(next)
  await sleep(1)
}
