import assert from 'node:assert/strict'
import test from 'node:test'
import { type AcquireOptions, createLeases, DEFAULTS, type LeasesOptions, type Store } from '../../src/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import { memoryServer } from '../../src/stores/memory.js'

const environment = virtualEnvironment(1)
const store = memoryServer({ environment }).connect()
const without = (over: Partial<Store['traits']>): Store => ({ ...store, traits: { ...store.traits, ...over } })
const create = (options: object, on = store) => createLeases(on, { environment, ...options } as LeasesOptions)
const acquire = (options: object, on = store) => create({}, on).acquire('k', options as AcquireOptions)

test('relations: renewing and one call must end before the deadline', async () => {
  assert.throws(() => create({ ttlMs: 1000, renewEveryMs: 1000 }), {
    name: 'RangeError',
    message:
      'renewEveryMs + callTimeoutMs must end before the deadline (988 ms for a ttlMs of 1000), but got 1000 + 166',
  })
  assert.throws(() => create({ ttlMs: 1000, renewEveryMs: 822, callTimeoutMs: 166 }), RangeError)
  assert.ok(create({ ttlMs: 1000, renewEveryMs: 821, callTimeoutMs: 166 }))
  await assert.rejects(
    create({ renewEveryMs: 3000 }).acquire('k', { ttlMs: 3000 }),
    /renewEveryMs \+ callTimeoutMs must end before/,
  )
  assert.throws(() => create({ ttlMs: 1000, driftRatio: 0.5 }), RangeError)
})

test('relations: the TTL, with its lock delay, lies within what the store can keep', async () => {
  const bounded = without({ ttlMinMs: 2000, ttlMaxMs: 30_000 })
  const says = (got: string) => ({
    name: 'RangeError',
    message: `ttlMs (with lockDelayMs) must lie between 2000 and 30000 on memory, but got ${got}`,
  })
  assert.throws(() => create({ ttlMs: 1999 }, bounded), says('1999'))
  assert.throws(() => create({ ttlMs: 30_001 }, bounded), says('30001'))
  assert.throws(() => create({ ttlMs: 20_000, lockDelayMs: 10_001 }, bounded), says('20000 + 10001'))
  assert.ok(create({ ttlMs: 20_000, lockDelayMs: 10_000 }, bounded))
  await assert.rejects(acquire({ ttlMs: 1999 }, bounded), says('1999'))
})

test('relations: what a store cannot do is refused, not ignored', async () => {
  const plain = without({ lockDelay: false, fenceFloor: false, detachable: false })
  const cannot = (option: string, trait: string) => ({
    name: 'RangeError',
    message: `${option} is not possible on memory (its trait ${trait} is false)`,
  })
  assert.throws(() => create({ lockDelayMs: 1 }, plain), cannot('lockDelayMs', 'lockDelay'))
  assert.throws(() => create({ fenceFloor: 1n }, plain), cannot('fenceFloor', 'fenceFloor'))
  await assert.rejects(acquire({ minHoldMs: 1 }, plain), cannot('minHoldMs', 'lockDelay'))
  await assert.rejects(acquire({ life: 'outlives-process' }, plain), cannot('life: "outlives-process"', 'detachable'))
  assert.ok(create({ lockDelayMs: 0, fenceFloor: 0n }, plain))
})

test('defaults: a third of the TTL between heartbeats, a sixth (at most 5 s) for a call, one drift and margin for all', () => {
  assert.deepEqual(
    [DEFAULTS.ttlMs, DEFAULTS.driftRatio, DEFAULTS.marginMs, DEFAULTS.lockDelayMs, DEFAULTS.fenceFloor],
    [10_000, 0.01, 2, 0, 0n],
  )
  assert.deepEqual(
    [
      DEFAULTS.renewEveryMs(10_000),
      DEFAULTS.renewEveryMs(1000),
      DEFAULTS.callTimeoutMs(10_000),
      DEFAULTS.callTimeoutMs(60_000),
    ],
    [3333, 333, 1666, 5000],
  )
  assert.match(DEFAULTS.label(), new RegExp(`:${process.pid}$`))
})

test('every TTL from 25 ms up has defaults that fit, or is refused; none is accepted with a heartbeat of 0', () => {
  for (let ttlMs = 1; ttlMs < 2000; ttlMs++) {
    let accepted = true
    try {
      create({ ttlMs })
    } catch (error) {
      assert.ok(error instanceof RangeError)
      accepted = false
    }
    if (accepted) assert.ok(DEFAULTS.renewEveryMs(ttlMs) >= 1 && DEFAULTS.callTimeoutMs(ttlMs) >= 1)
    else assert.ok(ttlMs < 25, `ttlMs ${ttlMs}`)
  }
  assert.ok(create({ ttlMs: 2 ** 31 - 1 }))
})

test('options are taken once: changing the object later changes nothing', async () => {
  const options = { environment, ttlMs: 1000 }
  const leases = createLeases(store, options)
  options.ttlMs = 5
  const lease = await environment.runUntil(leases.acquire('taken once'))
  assert.equal(lease.ttlMs, 1000)
  await environment.runUntil(lease.release())
})
