/** What `run` asks for, held against what a store can do and what it grants. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CliError } from '../../src/cli/exit.js'
import { planOf, stepAt } from '../../src/cli/run/plan.js'
import { type Lengths, planFor, refuseWhatStoreCannot } from '../../src/cli/run/relations.js'
import { DEFAULTS } from '../../src/options.js'
import { sqliteTraits } from '../../src/stores/sqlite.js'
import { deadlineOf } from '../../src/validity.js'

const LENGTHS: Lengths = { ttlMs: 10_000, graceMs: undefined, lockDelayMs: 0, minHoldMs: 0 }
const refused = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CliError && error.exitCode === 64, String(error))
  assert.match(error.message, message)
  return true
}

test('what the store cannot do is refused by the name of its flag, with what fits', () => {
  const store = { name: 'sqlite', traits: sqliteTraits }
  const lacking = { name: 'plain', traits: { ...sqliteTraits, lockDelay: false } }
  const bounded = { name: 'short', traits: { ...sqliteTraits, ttlMinMs: 1_000, ttlMaxMs: 30_000 } }
  const check = (more: Partial<Lengths>, on = store) => refuseWhatStoreCannot({ ...LENGTHS, ...more }, on)
  check({ lockDelayMs: 1_000, minHoldMs: 60_000 })
  check({}, lacking)
  check({ lockDelayMs: 20_000 }, bounded)
  for (const [more, on, message] of [
    [
      { lockDelayMs: 1_500 },
      lacking,
      /^--lock-delay must be 0s on plain, .* but got 1s500ms; leave it out, or use sqlite/,
    ],
    [{ minHoldMs: 60_000 }, lacking, /^--min-hold must be 0s on plain, .* but got 1m; leave it out/],
    [{ ttlMs: 500 }, bounded, /^--ttl must lie between 1s and 30s on short, but got 500ms$/],
    [{ ttlMs: 31_000 }, bounded, /^--ttl must lie between 1s and 30s on short, but got 31s$/],
    [{ minHoldMs: 30_001 }, bounded, /^--min-hold must be at most 30s on short, but got 30s1ms$/],
    [{ lockDelayMs: 20_001 }, bounded, /^--lock-delay must be at most 20s with --ttl 10s on short .*but got 20s1ms$/],
    [{}, { name: 'tied', traits: { ...sqliteTraits, detachable: false } }, /^run needs a store .* tied has none; use/],
  ] as const)
    assert.throws(() => check(more, on), refused(message))
})

test('a grant as long as was asked for, or longer, keeps the plan', () => {
  const asked = planOf(10_000, 3_000)
  for (const granted of [10_000, 12_000]) assert.equal(planFor(granted, { ...LENGTHS, graceMs: 3_000 }, asked), asked)
})

test('a shorter grant: everything fits before the deadline that it gives, or is refused', () => {
  let accepted = 0
  for (const ttlMs of [1_000, 3_000, 10_000, 60_000, 600_000])
    for (const share of [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
      for (const grace of [undefined, 0, 0.05, 0.2, 0.3]) {
        const graceMs = grace === undefined ? undefined : Math.floor(ttlMs * grace)
        const granted = Math.floor(ttlMs * share)
        try {
          const plan = planFor(granted, { ...LENGTHS, ttlMs, graceMs }, planOf(ttlMs, graceMs))
          const deadline = deadlineOf(0, granted, DEFAULTS)
          const renewEveryMs = DEFAULTS.renewEveryMs(ttlMs)
          const repeated = Math.min(renewEveryMs, granted / 3) + DEFAULTS.callTimeoutMs(ttlMs) + renewEveryMs / 4
          assert.equal(stepAt(repeated, deadline, plan), 'wait', `${granted} of ${ttlMs}, grace ${graceMs}`)
          if (graceMs !== undefined) assert.equal(plan.graceMs, graceMs)
          accepted++
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error
          refused(/^--grace must be at most \S+ here, since the store granted only |^the store granted only /)(error)
        }
      }
  assert.ok(accepted > 60, `${accepted}`)
})

test('control: with the plan of what was asked for, a shorter grant would leave no time to repeat a renewal', () => {
  const asked = planOf(10_000, 3_000)
  const repeated = DEFAULTS.renewEveryMs(10_000) * 1.25 + DEFAULTS.callTimeoutMs(10_000)
  assert.notEqual(stepAt(repeated, deadlineOf(0, 8_000, DEFAULTS), asked), 'wait')
  assert.throws(
    () => planFor(8_000, { ...LENGTHS, graceMs: 3_000 }, asked),
    refused(/^--grace must be at most 2s\d+ms here, since the store granted only 8s of --ttl 10s, but got 3s$/),
  )
  assert.throws(
    () => planFor(3_000, LENGTHS, planOf(10_000, undefined)),
    refused(/^the store granted only 3s of --ttl 10s, too short to renew/),
  )
})
