import assert from 'node:assert/strict'
import test from 'node:test'
import { type AcquireOptions, createLeases, type LeasesOptions } from '../../src/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import { memoryServer } from '../../src/stores/memory.js'

const environment = virtualEnvironment(1)
const store = memoryServer({ environment }).connect()
const create = (options: object) => createLeases(store, { environment, ...options } as LeasesOptions)
const acquire = (options: object) => create({}).acquire('k', options as AcquireOptions)

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
