import assert from 'node:assert/strict'
import type { Check } from './check.js'
import type { Harness } from './harness.js'

const kills = (harness: Harness) => harness.kill !== undefined

export const deathChecks: readonly Check[] = [
  {
    name: 'death: the key of a process killed with -9 is free when its TTL has passed, if not before (B082)',
    applies: (_store, harness) => kills(harness),
    async run(bench) {
      const claim = bench.claim(bench.key(), { life: { pids: [] } })
      await bench.harness.kill?.(claim)
      const control = await bench.hold(await bench.open(), bench.key())
      await bench.past(control)
      if (await bench.isFree(claim.key)) return
      // A lease of a living client shows whether leases end at all; where sessions carry them, only a death ends them.
      const ends = bench.traits.expiry === 'session' || (await bench.isFree(control.key))
      assert.ok(!ends, 'a dead process keeps its key')
    },
  },
  {
    name: 'death: the key of a killed process is free as soon as its death is seen',
    applies: (_store, harness) => kills(harness) && harness.deathSeenWithinMs !== undefined,
    async run(bench) {
      // A TTL that cannot be the reason.
      const ttlMs = Math.min(bench.ttlMs * 20, bench.traits.ttlMaxMs)
      const claim = bench.claim(bench.key(), { ttlMs, life: { pids: [] } })
      await bench.harness.kill?.(claim)
      const freed = await bench.eventually(() => bench.isFree(claim.key), bench.harness.deathSeenWithinMs ?? 0)
      assert.ok(freed, 'the death of the holder went unseen')
    },
  },
  {
    name: 'death: a lease that outlives its process is kept to its end',
    applies: (store, harness) => kills(harness) && store.traits.detachable,
    async run(bench) {
      const ttlMs = Math.min(bench.ttlMs * 20, bench.traits.ttlMaxMs)
      const claim = bench.claim(bench.key(), { ttlMs, life: 'outlives-process' })
      await bench.harness.kill?.(claim)
      await bench.wait(bench.ttlMs)
      await bench.assertTaken(claim.key, 'though the process that took it is dead')
    },
  },
]
