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

const NO_NUMBERS = ['500', '', true, {}, [], 5n, () => 1, Symbol('s')]
const NO_DURATIONS = [
  Number.NaN,
  0.5,
  123.45,
  -1,
  -0.5,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  1e21,
  2 ** 53,
  2 ** 31,
]

/** Wrong values of each option, and what the message must say of it: option, expectation, value. */
const WRONG: Record<
  string,
  { readonly at: 'create' | 'acquire'; readonly values: readonly unknown[]; readonly says: RegExp }
> = {
  namespace: {
    at: 'create',
    values: [5, '', 'a\ud800', 'x'.repeat(256), {}],
    says: /a string|non-empty|well-formed|at most 255 bytes/,
  },
  'ttlMs ': {
    at: 'create',
    values: [...NO_NUMBERS, ...NO_DURATIONS, 0],
    says: /a whole number of milliseconds between 1 and 2147483647/,
  },
  renewEveryMs: {
    at: 'create',
    values: [...NO_NUMBERS, ...NO_DURATIONS, 0],
    says: /a whole number of milliseconds between 1 and 2147483647/,
  },
  callTimeoutMs: {
    at: 'create',
    values: [...NO_NUMBERS, ...NO_DURATIONS, 0],
    says: /a whole number of milliseconds between 1 and 2147483647/,
  },
  marginMs: {
    at: 'create',
    values: [...NO_NUMBERS, ...NO_DURATIONS],
    says: /a whole number of milliseconds between 0 and 2147483647/,
  },
  lockDelayMs: {
    at: 'create',
    values: [...NO_NUMBERS, ...NO_DURATIONS],
    says: /a whole number of milliseconds between 0 and 2147483647/,
  },
  driftRatio: {
    at: 'create',
    values: [...NO_NUMBERS, Number.NaN, -0.01, 0.51, 1, Number.POSITIVE_INFINITY],
    says: /a number from 0 to 0.5/,
  },
  fenceFloor: {
    at: 'create',
    values: [5, '5', -1n, 2n ** 62n + 1n, Number.NaN],
    says: /a bigint|between 0n and 4611686018427387904n/,
  },
  label: {
    at: 'create',
    values: [5, '', 'a\udc00', 'x'.repeat(256)],
    says: /a string|non-empty|well-formed|at most 255 bytes/,
  },
  observe: { at: 'create', values: [5, 'x', {}], says: /a function/ },
  ttlMs: {
    at: 'acquire',
    values: [...NO_NUMBERS, ...NO_DURATIONS, 0],
    says: /a whole number of milliseconds between 1 and 2147483647/,
  },
  waitMs: {
    at: 'acquire',
    values: [...NO_NUMBERS, ...NO_DURATIONS.filter((ms) => ms !== Number.POSITIVE_INFINITY)],
    says: /a whole number of milliseconds between 0 and 2147483647, or Infinity/,
  },
  signal: { at: 'acquire', values: [5, {}, new AbortController()], says: /an AbortSignal/ },
  'label ': {
    at: 'acquire',
    values: [5, '', 'a\udc00', 'x'.repeat(256)],
    says: /a string|non-empty|well-formed|at most 255 bytes/,
  },
  heartbeat: { at: 'acquire', values: [0, 1, 'false', {}], says: /true or false/ },
  minHoldMs: {
    at: 'acquire',
    values: [...NO_NUMBERS, ...NO_DURATIONS],
    says: /a whole number of milliseconds between 0 and 2147483647/,
  },
  maxHoldMs: {
    at: 'acquire',
    values: [...NO_NUMBERS, ...NO_DURATIONS, 0],
    says: /a whole number of milliseconds between 1 and 2147483647/,
  },
  life: {
    at: 'acquire',
    values: ['forever', {}, { pids: [] }, { pids: [0] }, { pids: [1.5] }, { pids: ['1'] }, 5],
    says: /"outlives-process" or \{ pids: \[positive whole numbers\] \}/,
  },
}

/** How a value is shown: enough to find it in one's own code. */
const shown = (value: unknown): RegExp => {
  if (typeof value === 'string') return /but got ("|\d+$)/
  if (typeof value === 'bigint') return new RegExp(`but got ${value}n$`)
  if (typeof value === 'object') return /but got an (array|object)$/
  return new RegExp(`but got ${String(value).replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`)
}

for (const [name, { at, values, says }] of Object.entries(WRONG)) {
  const option = name.trim()
  test(`B012: ${option} of ${at}: every wrong value is refused with option, expectation and value`, async () => {
    for (const value of values) {
      const call = async () => (at === 'create' ? create({ [option]: value }) : acquire({ [option]: value }))
      await assert.rejects(call, (error: Error) => {
        assert.ok(error instanceof TypeError || error instanceof RangeError, String(error))
        const isNumberOption = /Ms$|Ratio$/.test(option)
        if (isNumberOption)
          assert.equal(error.name, typeof value === 'number' ? 'RangeError' : 'TypeError', error.message)
        assert.match(error.message, new RegExp(`^${option} must be `))
        assert.match(error.message, says)
        assert.match(error.message, shown(value))
        return true
      })
    }
  })
}

test('B012: unknown names are refused wherever options are taken, and the message lists those that are known', async () => {
  const leases = create({})
  assert.throws(() => create({ ttl: 5 }), {
    name: 'TypeError',
    message: /^createLeases knows no option "ttl"; it knows namespace, ttlMs,/,
  })
  assert.throws(() => create({ retryCount: 3 }), /knows no option "retryCount"/)
  await assert.rejects(leases.acquire('k', { wait: 5 } as never), {
    name: 'TypeError',
    message: /^acquire knows no option "wait"; it knows .*waitMs/,
  })
  await assert.rejects(leases.tryAcquire('k', { waitMs: 5 } as never), {
    message: /^tryAcquire knows no option "waitMs"/,
  })
  await assert.rejects(
    leases.run('k', { timeout: 5 } as never, () => 1),
    /knows no option "timeout"/,
  )
  await assert.rejects(
    leases.revoke('k', { forced: true } as never),
    /^TypeError: revoke knows no option "forced"; it knows force$/,
  )
  await assert.rejects(leases.revoke('k', { force: 1 } as never), /^TypeError: force must be true or false, but got 1$/)
  for (const options of [5, 'x', null]) {
    await assert.rejects(leases.acquire('k', options as never), {
      name: 'TypeError',
      message: /^options of acquire must be an object, but got/,
    })
    assert.throws(() => createLeases(store, options as never), {
      name: 'TypeError',
      message: /^options of createLeases must be an object, but got/,
    })
  }
  await assert.rejects(leases.run('k', {}, 5 as never), {
    name: 'TypeError',
    message: 'work must be a function, but got 5',
  })
})

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
