import assert from 'node:assert/strict'
import test from 'node:test'
import { backoff } from '../../src/backoff.js'

const BOUNDS = { baseMs: 20, capMs: 250 }

test('it doubles up to its cap, and is always between half and the whole of that', () => {
  for (let attempt = 0; attempt < 2000; attempt++) {
    const whole = Math.min(250, 20 * 2 ** attempt)
    assert.equal(backoff(attempt, 0, BOUNDS), whole / 2)
    assert.ok(Math.abs(backoff(attempt, 1 - 2 ** -32, BOUNDS) - whole) < 1e-6)
    assert.equal(backoff(attempt, 0.5, BOUNDS), whole * 0.75)
  }
})

test('a base above the cap is capped', () => {
  assert.equal(backoff(0, 0, { baseMs: 20, capMs: 8 }), 4)
})
