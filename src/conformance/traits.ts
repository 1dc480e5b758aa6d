import assert from 'node:assert/strict'
import type { StoreTraits } from '../store.js'
import type { Check } from './check.js'

/** What each trait may say, the weaker before the stronger. */
const VALUES = {
  fencing: ['none', 'volatile', 'durable'],
  fenceFloor: [false, true],
  expiry: ['server-clock', 'host-clock', 'session'],
  revoke: ['force-only', 'asks', 'refuses-renewal'],
  order: ['none', 'fifo'],
  wakeup: ['poll', 'notify'],
  scope: ['process', 'host', 'network'],
  lockDelay: [false, true],
  detachable: [false, true],
  listsNames: [false, true],
} as const satisfies Partial<Record<keyof StoreTraits, readonly unknown[]>>

export const traitsChecks: readonly Check[] = [
  {
    name: 'traits: every trait is declared, with a value that it can have',
    async run(bench) {
      const { traits } = bench
      for (const [name, values] of Object.entries(VALUES)) {
        const value: unknown = traits[name as keyof StoreTraits]
        assert.ok(
          (values as readonly unknown[]).includes(value),
          `${name} is ${String(value)}, expected one of ${values.join(', ')}`,
        )
      }
      const { ttlMinMs, ttlMaxMs, ttlGranularityMs } = traits
      for (const ms of [ttlMinMs, ttlMaxMs, ttlGranularityMs])
        assert.ok(Number.isInteger(ms) && ms > 0, `${ms} is no length`)
      assert.ok(
        ttlMinMs <= bench.ttlMs && bench.ttlMs <= ttlMaxMs,
        `the suite's TTL of ${bench.ttlMs} ms is out of bounds`,
      )
    },
  },
  {
    name: 'traits: what is declared has the members that it takes',
    async run(bench) {
      const store = await bench.open()
      assert.ok(store.name.length > 0, 'a store needs a name')
      if (bench.traits.wakeup === 'notify') assert.ok(store.watch, 'wakeup is notify, and there is no watch')
      if (bench.traits.listsNames) assert.ok(store.list, 'listsNames is true, and there is no list')
      if (bench.traits.revoke !== 'force-only')
        assert.ok(store.revoke, `revoke is ${bench.traits.revoke}, and there is no revoke`)
    },
  },
  {
    name: 'traits: the granted TTL keeps to the bounds and steps that are declared',
    async run(bench) {
      const store = await bench.open()
      const { ttlMinMs, ttlMaxMs, ttlGranularityMs } = bench.traits
      for (const ttlMs of [ttlMinMs, bench.ttlMs, ttlMaxMs]) {
        const hold = await bench.hold(store, bench.key(), { ttlMs })
        await bench.release(store, hold)
        const { grantedTtlMs } = hold
        assert.ok(
          grantedTtlMs >= ttlMinMs && grantedTtlMs <= ttlMaxMs,
          `${grantedTtlMs} ms were granted for ${ttlMs} ms`,
        )
        const isStep = grantedTtlMs % ttlGranularityMs === 0 || grantedTtlMs === ttlMs
        assert.ok(isStep, `${grantedTtlMs} ms is not a multiple of ${ttlGranularityMs} ms`)
      }
    },
  },
  {
    name: 'traits: a probe tells every client the same, and nothing weaker than was declared',
    async run(bench) {
      const probes = [await (await bench.open()).probe(bench.call), await (await bench.open()).probe(bench.call)]
      const [one, two] = probes as [(typeof probes)[0], (typeof probes)[0]]
      assert.ok(one && two && one.id.length > 0 && one.incarnation.length > 0)
      assert.equal(one.id, two.id, 'two clients of one backend must name it alike')
      assert.equal(one.incarnation, two.incarnation, 'the backend has not lost its memory in between')
      for (const name of ['fencing', 'revoke', 'order', 'wakeup', 'fenceFloor', 'lockDelay', 'detachable'] as const) {
        const rank = (traits: StoreTraits) => (VALUES[name] as readonly unknown[]).indexOf(traits[name])
        assert.ok(
          rank(one.traits) >= rank(bench.traits),
          `${name} is ${one.traits[name]}, and ${bench.traits[name]} was declared`,
        )
      }
    },
  },
]
