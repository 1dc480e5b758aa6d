import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HolderKind, takeOvers } from '../support/take-over.js'

const TTL_MS = 1500

test('kill -9 of a holder that can be seen: the waiter holds within 100 ms', async (t) => {
  const gaps = await takeOvers('visible', 5, 10_000)
  t.diagnostic(`worst of ${gaps.length}: ${Math.max(...gaps).toFixed(1)} ms`)
  assert.ok(Math.max(...gaps) <= 100, gaps.join(', '))
})

for (const kind of ['hidden', 'run'] as HolderKind[]) {
  test(`kill -9 of a holder (${kind}) whose death proves nothing: after its TTL, within 250 ms, and never before`, async (t) => {
    const gaps = await takeOvers(kind, 3, TTL_MS)
    t.diagnostic(`${gaps.map((gap) => gap.toFixed(0)).join(', ')} ms`)
    assert.ok(Math.max(...gaps) <= TTL_MS + 250, gaps.join(', '))
    // The last renewal was sent at most a third of the TTL (and a little) before.
    assert.ok(Math.min(...gaps) >= TTL_MS / 2, gaps.join(', '))
  })
}
