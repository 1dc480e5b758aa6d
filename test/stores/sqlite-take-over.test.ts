import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeOvers } from '../support/take-over.js'

/** A few kills each; twenty are `npm run soak -- take-over`. */
const TTL_MS = 1500

test('kill -9 of a holder that can be seen: the waiter holds within 100 ms', async (t) => {
  const gaps = await takeOvers('visible', 3, 10_000)
  t.diagnostic(`worst of ${gaps.length}: ${Math.max(...gaps).toFixed(1)} ms`)
  assert.ok(Math.max(...gaps) <= 100, gaps.join(', '))
})

test('kill -9 of a holder whose death cannot be seen: after its TTL, within 250 ms, and never before', async (t) => {
  const gaps = await takeOvers('hidden', 2, TTL_MS)
  t.diagnostic(`${gaps.map((gap) => gap.toFixed(0)).join(', ')} ms`)
  assert.ok(Math.max(...gaps) <= TTL_MS + 250, gaps.join(', '))
  // The last renewal was sent at most a third of the TTL (and a little) before.
  assert.ok(Math.min(...gaps) >= TTL_MS / 2, gaps.join(', '))
})

test('kill -9 of holdfast run: as soon as its watchdog has ended the command, long before the TTL', async (t) => {
  const gaps = await takeOvers('run', 2, 9_000)
  t.diagnostic(`${gaps.map((gap) => gap.toFixed(0)).join(', ')} ms`)
  assert.ok(Math.max(...gaps) <= 3_000, gaps.join(', '))
})
