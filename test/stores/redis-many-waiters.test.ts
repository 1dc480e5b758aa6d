import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contend, waitQuietly } from '../support/contention.js'
import { withRedis } from '../support/servers/redis.js'

/** A short form, every process with another client library; the whole of it is `npm run soak -- contention 60 redis`. */
const SIZE = { store: 'redis', processes: 5, waiters: 4, seconds: 4 } as const

describe('5 processes x 4 waiters on one key of a Redis server', withRedis, () => {
  test('no overlap, growing fences, nobody starves', async (t) => {
    const verdict = await contend(SIZE)
    t.diagnostic(JSON.stringify(verdict))
    assert.deepEqual(verdict.overlaps, [])
    assert.equal(verdict.fencesOutOfOrder, 0)
    assert.equal(verdict.falseLosses, 0)
    assert.ok(verdict.least >= 1, `the least fortunate waiter was served ${verdict.least} times`)
  })

  test('the same with a kill -9 every second', async (t) => {
    const verdict = await contend({ ...SIZE, seconds: 6, killsPerSecond: 1 })
    t.diagnostic(JSON.stringify(verdict))
    assert.ok(verdict.kills >= 4 && verdict.holds > 0)
    assert.deepEqual(verdict.overlaps, [])
    assert.equal(verdict.fencesOutOfOrder, 0)
    assert.equal(verdict.falseLosses, 0)
  })

  test('19 waiters behind one holder wait quietly: for less than polling every 50 ms costs', async (t) => {
    const { waiting, polling } = await waitQuietly(SIZE, 50)
    const used = `${waiting.toFixed(3)} s of CPU in ${SIZE.seconds} s; polling ${polling.toFixed(3)} s`
    t.diagnostic(used)
    assert.ok(waiting < polling, used)
  })
})
