/** A holder killed with -9 on Redis, which cannot see a death: the next one holds when the ttl has ended, and never before. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { takeOvers } from '../support/redis-take-over.js'
import { withRedis } from '../support/servers/redis.js'

/** One kill each; twenty are `npm run soak -- redis-take-over`. */
const TTL_MS = 2_000

describe('kill -9: a waiter in another process holds within the ttl and 50 ms', withRedis, () => {
  for (const kind of ['library', 'run'] as const) {
    test(kind, async (t) => {
      const found = await takeOvers(kind, 1, TTL_MS)
      for (const { afterKillMs, leftMs } of found) {
        const shown = `${afterKillMs.toFixed(1)} ms after the kill, with ${leftMs} ms left`
        t.diagnostic(shown)
        assert.ok(afterKillMs <= TTL_MS + 50, shown)
        // Where there was a lease at all, it was waited for; both clocks are this host's.
        assert.ok(leftMs > 0 && afterKillMs >= leftMs, shown)
      }
    })
  }
})
