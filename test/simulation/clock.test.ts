import assert from 'node:assert/strict'
import test from 'node:test'
import { virtualEnvironment } from '../../src/simulation/index.js'

test('a clock has a rate and an offset of its own, and its timers follow it', async () => {
  const env = virtualEnvironment(1)
  const fast = env.machine('fast', { rate: 1.25, offsetMs: 1000 })
  const fired: number[] = []
  fast.clock.timer(100, () => fired.push(env.scheduler.now))
  await env.advance(79)
  assert.deepEqual([fired, fast.clock.now()], [[], 1000 + 79 * 1.25])
  await env.advance(1)
  assert.deepEqual([fired, fast.clock.now()], [[80], 1100])
})

test('a timer never fires before its time by its own clock, whatever the rounding', async () => {
  const env = virtualEnvironment(1)
  const odd = env.machine('odd', { rate: 1.000123456789, offsetMs: 0.1 })
  for (let i = 0; i < 2000; i++) {
    const due = odd.clock.now() + i / 7
    odd.clock.timer(i / 7, () => assert.ok(odd.clock.now() >= due))
  }
  await env.advance(400)
  assert.equal(odd.clock.pendingTimers, 0)
})

test('a change of rate moves pending timers, and the clock does not jump', async () => {
  const env = virtualEnvironment(1)
  const fired: number[] = []
  env.clock.timer(100, () => fired.push(env.scheduler.now))
  await env.advance(50)
  env.clock.setRate(0.5)
  assert.equal(env.clock.now(), 50)
  await env.advance(99)
  assert.deepEqual(fired, [])
  await env.advance(1)
  assert.deepEqual([fired, env.clock.now()], [[150], 100])
})

test('a step of the wall clock moves nothing but the wall clock', async () => {
  const env = virtualEnvironment(1)
  const [now, wall] = [env.clock.now(), env.clock.wall()]
  let fired = 0
  env.clock.timer(10, () => fired++)
  env.clock.stepWall(-3_600_000)
  assert.deepEqual([env.clock.now(), env.clock.wall()], [now, wall - 3_600_000])
  await env.advance(9)
  env.clock.stepWall(7_200_000)
  assert.equal(fired, 0)
  await env.advance(1)
  assert.equal(fired, 1)
})

test('paused: callbacks are held while others go on, then come in their order', async () => {
  const env = virtualEnvironment(1)
  const other = env.machine('other')
  const ran: string[] = []
  env.clock.timer(20, () => ran.push(`second at ${env.scheduler.now}`))
  env.clock.timer(10, () => ran.push(`first at ${env.scheduler.now}`))
  const cancelled = env.clock.timer(15, () => ran.push('cancelled'))
  other.clock.timer(30, () => ran.push(`other at ${env.scheduler.now}`))
  env.clock.pause(100)
  await env.advance(50)
  cancelled.cancel()
  await env.advance(50)
  assert.deepEqual(ran, ['other at 30', 'first at 100', 'second at 100'])
})

test('suspended: now() has counted the sleep, the host clock has not', async () => {
  const env = virtualEnvironment(1)
  const host = env.host.now()
  env.clock.suspend(3_600_000)
  await env.advance(1_000_000)
  assert.deepEqual([env.clock.now(), env.host.now() - host], [1_000_000, 0])
  await env.advance(2_600_000)
  assert.deepEqual([env.clock.now(), env.host.now() - host], [3_600_000, 0])
  await env.advance(5)
  assert.equal(env.host.now() - host, 5)
})

test('blocked: time passes within one tick and nothing runs', async () => {
  const env = virtualEnvironment(1)
  let ran = 0
  env.clock.timer(10, () => ran++)
  env.clock.block(500)
  assert.deepEqual([env.clock.now(), ran], [500, 0])
  await env.advance(0)
  assert.equal(ran, 1)
})

test('pending timers are counted, those that would keep a process running apart', () => {
  const env = virtualEnvironment(1)
  const kept = env.clock.timer(10, () => {}, { keepAlive: true })
  env.clock.timer(10, () => {})
  assert.deepEqual([env.clock.pendingTimers, env.clock.keptAliveBy], [2, 1])
  kept.cancel()
  assert.deepEqual([env.clock.pendingTimers, env.clock.keptAliveBy], [1, 0])
})
