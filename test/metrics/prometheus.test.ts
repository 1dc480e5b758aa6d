import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Counter, register as defaultRegistry, type OpenMetricsContentType, Registry } from 'prom-client'
import { createLeases, type Leases } from '../../src/index.js'
import { prometheus } from '../../src/metrics/index.js'
import { memoryServer, memoryStore } from '../../src/stores/memory.js'
import { onBed } from '../support/bed.js'
import { byLabel, lint, scrape, withPromtool } from '../support/promtool.js'

const textOf = async (register: Registry) => scrape(await register.metrics())

/** The list in the design of the public face: names, types and labels that dashboards rely on. */
const CONTRACT = [
  ['holdfast_acquire_attempts_total', 'counter', 'outcome'],
  ['holdfast_acquire_wait_seconds', 'histogram', 'le'],
  ['holdfast_heartbeat_latency_seconds', 'histogram', 'le'],
  ['holdfast_lease_acquired_total', 'counter', ''],
  ['holdfast_lease_hold_seconds', 'histogram', 'le'],
  ['holdfast_lease_lost_total', 'counter', 'reason'],
  ['holdfast_leases_held', 'gauge', ''],
]

/** Name, type and labels of what a registry writes. */
async function written(register: Registry): Promise<string[][]> {
  const metrics = await register.getMetricsAsJSON()
  return metrics
    .map(({ name, type, values }) => {
      const labels = values.flatMap((value) => Object.keys(value.labels))
      return [name, String(type), [...new Set(labels)].sort().join(',')]
    })
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
}

test('names, types and labels are those of the contract, and are there before anything has happened', async () => {
  const register = new Registry()
  prometheus(createLeases(memoryStore()), register)
  assert.deepEqual(await written(register), CONTRACT)
  const seen = await textOf(register)
  assert.equal(seen.get('holdfast_lease_lost_total{reason="expired"}'), 0)
  assert.equal(seen.get('holdfast_acquire_attempts_total{outcome="unavailable"}'), 0)
})

describe('10,000 keys', () => {
  const useKeys = async (leases: Leases, count: number) => {
    for (let i = 0; i < count; i++) await leases.run(`job:${i % 3}:${i}`, () => {})
  }

  test('B225: add no series', async () => {
    const register = new Registry()
    const leases = createLeases(memoryStore())
    prometheus(leases, register)
    const before = [...(await textOf(register)).keys()]
    await useKeys(leases, 10_000)
    const after = await textOf(register)
    assert.deepEqual([...after.keys()], before)
    assert.equal(after.get('holdfast_lease_acquired_total'), 10_000)
    assert.ok(![...after.keys()].some((series) => series.includes('job')))
    await leases.close()
  })

  test('control: with a label that is the key, each key adds its own; with one that groups them, each group', async () => {
    const sizes: number[] = []
    for (const keyLabel of [(key: string) => key, (key: string) => key.split(':')[1] ?? '']) {
      const register = new Registry()
      const leases = createLeases(memoryStore())
      prometheus(leases, register, { keyLabel })
      await useKeys(leases, 100)
      sizes.push((await textOf(register)).size)
      await leases.close()
    }
    const [each = 0, grouped = 0] = sizes
    assert.ok(each > 100 * 30 && grouped < 3 * 60, `${each} and ${grouped} series`)
  })
})

test(
  'with a label for the key, promtool has nothing to say either, and odd keys are told apart',
  withPromtool,
  async () => {
    const register = new Registry()
    const leases = createLeases(memoryStore())
    prometheus(leases, register, { keyLabel: (key) => key })
    const keys = ['a"b', 'a\\b', 'a\nb', 'größe', '{}']
    for (const key of keys) await leases.run(key, () => {})
    const kept = await leases.acquire('kept')
    const text = await register.metrics()
    assert.equal(lint(text), '')
    const seen = scrape(text)
    assert.equal([...seen.keys()].filter((series) => series.startsWith('holdfast_lease_acquired_total{')).length, 6)
    assert.deepEqual(byLabel(seen, 'holdfast_leases_held', 'key'), { kept: 1 })
    await kept.release()
    assert.deepEqual(byLabel(await textOf(register), 'holdfast_leases_held', 'key'), {})
  },
)

onBed('leases held before anybody listened are seen, and their end counts nothing below 0', async (here) => {
  const early = await here.runUntil(here.leases.acquire('early'))
  const register = new Registry()
  prometheus(here.leases, register)
  const held = async () => (await textOf(register)).get('holdfast_leases_held')
  assert.equal(await held(), 1)
  const lost = await here.runUntil(here.leases.acquire('lost', { heartbeat: false }))
  assert.equal(await held(), 2)
  await here.advance(990)
  assert.deepEqual([await held(), lost.held], [1, false], 'lost, and not yet released')
  await here.runUntil(early.release())
  await here.runUntil(lost.release())
  assert.equal(await held(), 0)
  const seen = await textOf(register)
  assert.equal(seen.get('holdfast_lease_acquired_total'), 1)
  assert.equal(seen.get('holdfast_lease_hold_seconds_count'), 2)
})

onBed('seconds are seconds, and land in their buckets', async (here) => {
  const register = new Registry()
  prometheus(here.leases, register)
  const other = await here.runUntil(here.others.acquire('k'))
  const waiting = here.leases.acquire('k')
  await here.advance(2_000)
  await here.runUntil(other.release())
  const lease = await here.runUntil(waiting)
  here.store.delayReplies(20, 'renew')
  await here.advance(700)
  await here.runUntil(lease.release())
  const seen = await textOf(register)
  const wait = seen.get('holdfast_acquire_wait_seconds_sum') ?? 0
  assert.ok(wait >= 2 && wait < 2.3, `${wait}`)
  assert.equal(seen.get('holdfast_acquire_wait_seconds_bucket{le="1"}'), 0)
  assert.equal(seen.get('holdfast_acquire_wait_seconds_bucket{le="5"}'), 1)
  const hold = seen.get('holdfast_lease_hold_seconds_sum') ?? 0
  assert.ok(hold >= 0.7 && hold < 0.8, `${hold}`)
  assert.equal(seen.get('holdfast_heartbeat_latency_seconds_bucket{le="0.01"}'), 0)
  assert.equal(seen.get('holdfast_heartbeat_latency_seconds_bucket{le="0.025"}'), 2)
})

describe('who reports to which registry', () => {
  const acquired = async (register: Registry) => (await textOf(register)).get('holdfast_lease_acquired_total')

  test('none given: the default registry of the copy that an import gets', async () => {
    const leases = createLeases(memoryStore())
    const stop = prometheus(leases)
    await leases.run('k', () => {})
    assert.equal(await acquired(defaultRegistry as Registry), 1)
    stop()
    defaultRegistry.clear()
  })

  test('the same again changes nothing; several add up', async () => {
    const register = new Registry()
    const server = memoryServer()
    const [one, two] = [createLeases(server.connect()), createLeases(server.connect())]
    assert.equal(prometheus(one, register), prometheus(one, register))
    prometheus(two, register)
    const lease = await one.acquire('k')
    await two.run('j', () => {})
    await two.acquire('m')
    assert.equal(await acquired(register), 3)
    assert.equal((await textOf(register)).get('holdfast_leases_held'), 2)
    await lease.release()
    assert.equal((await textOf(register)).get('holdfast_leases_held'), 1)
  })

  test('one may report to several; what is stopped counts no more, and can begin again', async () => {
    const [first, second] = [new Registry(), new Registry()]
    const leases = createLeases(memoryStore())
    const stop = prometheus(leases, first)
    prometheus(leases, second)
    await leases.run('k', () => {})
    stop()
    const lease = await leases.acquire('k')
    assert.deepEqual([await acquired(first), await acquired(second)], [1, 2])
    assert.equal((await textOf(first)).get('holdfast_leases_held'), 0)
    prometheus(leases, first)
    await lease.release()
    await leases.run('k', () => {})
    assert.deepEqual([await acquired(first), await acquired(second)], [2, 3])
  })

  test('after the registry was cleared, it is filled again; after a reset, counts begin again', async () => {
    const register = new Registry()
    const leases = createLeases(memoryStore())
    prometheus(leases, register)
    await leases.run('k', () => {})
    register.resetMetrics()
    await leases.run('k', () => {})
    assert.equal(await acquired(register), 1)
    register.clear()
    prometheus(leases, register)
    await leases.run('k', () => {})
    assert.equal(await acquired(register), 1)
    assert.deepEqual(await written(register), CONTRACT)
  })

  test('OpenMetrics', async () => {
    const register = new Registry<OpenMetricsContentType>()
    register.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
    const leases = createLeases(memoryStore())
    prometheus(leases, register)
    await leases.run('k', () => {})
    prometheus(leases, register)
    assert.match(await register.metrics(), /^holdfast_lease_acquired_total 1$/m)
  })

  test('a registry keeps no Leases alive', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const register = new Registry()
    const make = async () => {
      const leases = createLeases(memoryStore())
      prometheus(leases, register)
      await leases.run('k', () => {})
      await leases.close()
      return new WeakRef(leases)
    }
    const gone = await make()
    const until = performance.now() + 10_000
    while (gone.deref() && performance.now() < until) {
      await new Promise((resolve) => setImmediate(resolve))
      collect()
    }
    assert.equal(gone.deref(), undefined)
    assert.equal(await acquired(register), 1)
    assert.equal((await textOf(register)).get('holdfast_leases_held'), 0)
  })
})

describe('what is refused', () => {
  const leases = createLeases(memoryStore())

  test('what is no Leases, no registry, no function', () => {
    assert.throws(
      () => prometheus({} as never),
      /^TypeError: leases must be what createLeases\(\) gave, but got object/,
    )
    assert.throws(() => prometheus(leases, {} as never), /^TypeError: register must be a Registry of prom-client/)
    assert.throws(
      () => prometheus(leases, new Registry(), { keyLabel: true } as never),
      /^TypeError: keyLabel must be a function from a key to text, but got boolean/,
    )
  })

  test('a registry that has a metric of that name, of somebody else; nothing is left in it', async () => {
    const register = new Registry()
    new Counter({ name: 'holdfast_lease_lost_total', help: 'theirs', registers: [register] })
    assert.throws(() => prometheus(leases, register), {
      code: 'ERR_LEASE_UNSUPPORTED',
      message: /has a metric holdfast_lease_lost_total that is not ours/,
    })
    assert.equal(register.getMetricsAsArray().length, 1)
  })

  test('keyLabel for some of one registry and not for others', () => {
    const register = new Registry()
    prometheus(leases, register)
    assert.throws(() => prometheus(createLeases(memoryStore()), register, { keyLabel: (key) => key }), /for all Leases/)
  })
})

test('a keyLabel that throws costs a warning, no count, no lease and no scrape', async () => {
  const warnings: string[] = []
  const listener = (warning: Error) => void warnings.push(warning.message)
  process.on('warning', listener)
  try {
    const register = new Registry()
    const leases = createLeases(memoryStore())
    prometheus(leases, register, {
      keyLabel: () => {
        throw new Error('no such group')
      },
    })
    assert.equal(await leases.run('k', () => 7), 7)
    const lease = await leases.acquire('k')
    const seen = await textOf(register)
    assert.equal(seen.get('holdfast_lease_acquired_total{key=""}'), 2)
    assert.equal(seen.get('holdfast_leases_held{key=""}'), 1)
    await lease.release()
    await leases.close()
    await new Promise((resolve) => setImmediate(resolve))
    assert.match(String(warnings[0]), /keyLabel threw.*no such group/)
  } finally {
    process.off('warning', listener)
  }
})
