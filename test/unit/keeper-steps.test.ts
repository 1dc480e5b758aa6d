import assert from 'node:assert/strict'
import test from 'node:test'
import { type Beat, granted, next, type Rhythm, unanswered } from '../../src/keeper.js'

const RHYTHM: Rhythm = { driftRatio: 0.01, marginMs: 2, renewEveryMs: 333, callTimeoutMs: 166, heartbeat: true }
const QUIET: Rhythm = { ...RHYTHM, heartbeat: false }
const TTL_MS = 1000

test('the first grant: deadline and heartbeat are counted from the send', () => {
  assert.deepEqual(granted(null, 100, TTL_MS, RHYTHM), { deadline: 1088, renewAt: 433 })
  assert.deepEqual(granted(null, 100, TTL_MS, QUIET), { deadline: 1088, renewAt: Number.POSITIVE_INFINITY })
})

test('a store that grants less is asked more often: the heartbeat is at most a third of what was granted', () => {
  assert.deepEqual(granted(null, 0, 300, RHYTHM), { deadline: 295, renewAt: 100 })
})

test('I1: the deadline only ever moves forward, for every order in which answers arrive', () => {
  const sends = [0, 50, 100, 333, 400, 700, 1000]
  for (const first of sends) {
    for (const second of sends) {
      for (const ttl of [TTL_MS, 500, 100]) {
        const before = granted(null, first, TTL_MS, RHYTHM)
        const after = granted(before, second, ttl, RHYTHM)
        assert.ok(after.deadline >= before.deadline)
        assert.ok(after.deadline === before.deadline || after.deadline === second + ttl * 0.99 - 2)
      }
    }
  }
})

test('a late answer to an earlier question does not bring the next heartbeat forward, nor a newer one push it back in time', () => {
  const beat: Beat = { deadline: 988, renewAt: 700 }
  assert.equal(granted(beat, 300, TTL_MS, RHYTHM).renewAt, 700)
  assert.equal(granted(beat, 600, TTL_MS, RHYTHM).renewAt, 933)
  assert.equal(granted({ deadline: 988, renewAt: 333 }, 333, TTL_MS, RHYTHM).renewAt, 666)
})

test('no verdict: the deadline stands, and the next question comes soon', () => {
  const beat: Beat = { deadline: 988, renewAt: 333 }
  assert.deepEqual(unanswered(beat, 500, RHYTHM), { deadline: 988, renewAt: 583 })
  assert.deepEqual(unanswered(beat, 500, { ...RHYTHM, renewEveryMs: 1 }), { deadline: 988, renewAt: 501 })
  assert.deepEqual(unanswered({ deadline: 988, renewAt: Number.POSITIVE_INFINITY }, 500, QUIET), {
    deadline: 988,
    renewAt: Number.POSITIVE_INFINITY,
  })
})

test('I2: what to do, for every order of now, heartbeat and deadline, with and without a renewal in flight', () => {
  for (const deadline of [1, 2, 3]) {
    for (const renewAt of [0, 1, 2, 3, 4, Number.POSITIVE_INFINITY]) {
      for (const now of [0, 1, 2, 3, 4]) {
        for (const renewing of [true, false]) {
          const expected = now >= deadline ? 'expire' : now >= renewAt && !renewing ? 'renew' : 'wait'
          assert.equal(
            next({ deadline, renewAt }, now, renewing),
            expected,
            JSON.stringify({ deadline, renewAt, now, renewing }),
          )
        }
      }
    }
  }
})

test('at least two renewals fit before the deadline with the defaults, whatever the first one does', () => {
  for (const ttlMs of [100, 1000, 10_000, 600_000]) {
    const rhythm = {
      ...RHYTHM,
      renewEveryMs: Math.floor(ttlMs / 3),
      callTimeoutMs: Math.min(Math.floor(ttlMs / 6), 5000),
    }
    let beat = granted(null, 0, ttlMs, rhythm)
    let asked = 0
    for (let now = beat.renewAt; next(beat, now, false) === 'renew'; now = beat.renewAt) {
      asked++
      beat = unanswered(beat, now + rhythm.callTimeoutMs, rhythm)
    }
    assert.ok(asked >= 2, `${asked} within ${ttlMs} ms`)
  }
})
