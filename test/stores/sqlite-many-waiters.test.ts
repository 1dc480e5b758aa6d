import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contend, judge, waitQuietly } from '../support/contention.js'

/** A short form; the whole of it is `npm run soak -- contention`. */
const SIZE = { processes: 8, waiters: 4, seconds: 8 }
/** Longer, since the first seconds of a process cost most. */
const QUIET = { ...SIZE, seconds: 10 }

test('8 processes x 4 waiters on one key: no overlap, growing fences, nobody starves', async (t) => {
  const verdict = await contend(SIZE)
  t.diagnostic(JSON.stringify(verdict))
  assert.deepEqual(verdict.overlaps, [])
  assert.equal(verdict.fencesOutOfOrder, 0)
  assert.equal(verdict.falseLosses, 0)
  assert.ok(verdict.least >= 1, `the least fortunate waiter was served ${verdict.least} times`)
})

test('the same with 2 kills -9 a second', async (t) => {
  const verdict = await contend({ ...SIZE, killsPerSecond: 2 })
  t.diagnostic(JSON.stringify(verdict))
  assert.ok(verdict.kills >= SIZE.seconds)
  assert.deepEqual(verdict.overlaps, [])
  assert.equal(verdict.fencesOutOfOrder, 0)
  assert.equal(verdict.falseLosses, 0)
})

test('31 waiters behind one holder wait quietly: for less than polling every 5 ms costs', async (t) => {
  const { waiting, polling } = await waitQuietly(QUIET, 5)
  const used = `${waiting.toFixed(3)} s of CPU in ${QUIET.seconds} s; polling ${polling.toFixed(3)} s`
  t.diagnostic(used)
  assert.ok(waiting < polling, used)
})

test('control: the judge sees an overlap, a holder that was never seen to end, and a fence that goes back', () => {
  const hold = (fence: number, entered: number, exited: number | null, pid = fence) => ({
    fence,
    pid,
    waiter: 0,
    entered,
    exited,
  })
  const none = new Map<number, number>()
  assert.equal(judge([hold(1, 0, 10), hold(2, 11, 20)], none, 1).overlaps.length, 0)
  assert.equal(judge([hold(1, 0, 10), hold(2, 9, 20)], none, 1).overlaps.length, 1)
  assert.equal(judge([hold(1, 0, null), hold(2, 9, 20)], none, 1).overlaps.length, 1)
  assert.equal(judge([hold(1, 0, null), hold(2, 9, 20)], new Map([[1, 8]]), 1).overlaps.length, 0)
  assert.equal(judge([hold(2, 0, 1), hold(1, 9, 20)], none, 1).fencesOutOfOrder, 1)
})
