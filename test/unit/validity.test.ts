import assert from 'node:assert/strict'
import test from 'node:test'
import { deadlineOf } from '../../src/validity.js'

test('I1: the deadline is the send plus the granted TTL, less drift and margin', () => {
  assert.equal(deadlineOf(0, 10_000, { driftRatio: 0.01, marginMs: 2 }), 9898)
  assert.equal(deadlineOf(123.25, 1000, { driftRatio: 0, marginMs: 0 }), 1123.25)
  assert.equal(deadlineOf(50, 1000, { driftRatio: 0.5, marginMs: 7 }), 543)
})

test('I1: whatever the clock rates within the drift, the holder stops before the store can give the key away', () => {
  const driftRatio = 0.01
  for (const ours of [1 - driftRatio / 2, 1, 1 + driftRatio / 2]) {
    for (const theirs of [1 - driftRatio / 2, 1, 1 + driftRatio / 2]) {
      for (const ttlMs of [1, 50, 1000, 10_000, 2 ** 31 - 1]) {
        const believedUntil = deadlineOf(0, ttlMs, { driftRatio, marginMs: 2 }) / ours
        const freedAt = ttlMs / theirs
        assert.ok(believedUntil < freedAt, `rates ${ours} and ${theirs}, ttl ${ttlMs}`)
      }
    }
  }
})

test('the check above finds a deadline without a drift margin', () => {
  assert.ok(deadlineOf(0, 10_000, { driftRatio: 0, marginMs: 2 }) / 0.995 > 10_000 / 1.005)
})
