import assert from 'node:assert/strict'
import test from 'node:test'
import { bed } from '../support/bed.js'

const DEADLINE_MS = 988

/** Heartbeats and time-outs for which a renewal is in flight at the deadline, between two of them, or just sent. */
const RHYTHMS = [
  {},
  { renewEveryMs: 100, callTimeoutMs: 800 },
  { renewEveryMs: 900, callTimeoutMs: 87 },
  { renewEveryMs: 300, callTimeoutMs: 50 },
  { renewEveryMs: 10, callTimeoutMs: 10 },
]

for (const rhythm of RHYTHMS) {
  for (const heartbeat of [true, false]) {
    const what = `${JSON.stringify(rhythm)}, ${heartbeat ? 'with' : 'without'} a heartbeat`
    test(`I2: a silent store: the signal aborts at the deadline, neither sooner nor later (${what})`, async () => {
      const here = bed(rhythm)
      const lease = await here.runUntil(here.leases.acquire('k', { heartbeat }))
      here.store.hang()
      if (!heartbeat) void lease.renew().catch(() => {})
      const lost = new Promise<number>((resolve) => {
        lease.signal.addEventListener('abort', () => resolve(here.env.clock.now()))
      })
      const at = await here.runUntil(lost)
      assert.ok(at >= DEADLINE_MS && at < DEADLINE_MS + 0.001, `${at} ms`)
      await here.end()
    })
  }
}
