import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CliError } from '../../src/cli/exit.js'
import { type Plan, planOf, stepAt } from '../../src/cli/run/plan.js'
import { parseDuration } from '../../src/cli/text/duration.js'
import { DEFAULTS } from '../../src/options.js'
import { deadlineOf } from '../../src/validity.js'

test('defaults: a fifth of the ttl, 5 s at most', () => {
  assert.deepEqual(planOf(10_000, undefined), { graceMs: 2_000, marginMs: 500, lookEveryMs: 100 })
  assert.deepEqual(planOf(2_000, undefined), { graceMs: 400, marginMs: 100, lookEveryMs: 100 })
  assert.equal(planOf(60_000, undefined).graceMs, 5_000)
})

test('for every ttl and grace that is accepted, one renewal may fail before TERM, and KILL comes before the deadline', () => {
  let accepted = 0
  for (const ttlMs of [50, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000]) {
    for (const share of [undefined, 0, 0.1, 0.2, 0.3, 0.35, 0.36, 0.4, 0.5, 1]) {
      let plan: Plan
      try {
        plan = planOf(ttlMs, share === undefined ? undefined : Math.floor(ttlMs * share))
      } catch (error) {
        assert.ok(error instanceof CliError && error.exitCode === 64)
        continue
      }
      accepted++
      const deadline = deadlineOf(0, ttlMs, DEFAULTS)
      const repeated = DEFAULTS.renewEveryMs(ttlMs) * 1.25 + DEFAULTS.callTimeoutMs(ttlMs)
      assert.equal(stepAt(repeated, deadline, plan), 'wait', `${ttlMs} ${share}`)
      assert.equal(stepAt(deadline - plan.marginMs, deadline, plan), 'kill')
      assert.equal(
        stepAt(deadline - plan.marginMs - plan.graceMs, deadline, plan),
        plan.graceMs > 0 ? 'terminate' : 'kill',
      )
      assert.ok(plan.marginMs >= 25)
    }
  }
  assert.ok(accepted > 60, `${accepted}`)
})

test('a ttl that is too short is told the shortest that works, and that one works', () => {
  for (const grace of [undefined, 0, 10, 100, 1_000, 60_000]) {
    for (const ttlMs of [0, 1, 50]) {
      const message = refusedPlan(ttlMs, grace)
      const least = /--ttl (?:must be|of) at least (\w+)/.exec(message)?.[1]
      const leastMs = parseDuration('--ttl', least ?? '')
      for (let works = leastMs; works < leastMs + 500; works++) planOf(works, grace)
      assert.match(refusedPlan(leastMs - 1, grace), new RegExp(`at least ${least}`), message)
      assert.doesNotMatch(message, /\d{4,}ms/)
    }
  }
})

function refusedPlan(ttlMs: number, grace: number | undefined): string {
  try {
    planOf(ttlMs, grace)
  } catch (error) {
    assert.ok(error instanceof CliError && error.exitCode === 64)
    return error.message
  }
  return assert.fail(`--ttl ${ttlMs}ms with --grace ${grace} was accepted`)
}

test('the default grace fits every ttl from 300 ms on', () => {
  for (let ttlMs = 300; ttlMs < 100_000; ttlMs += 37) planOf(ttlMs, undefined)
})
