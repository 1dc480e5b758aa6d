import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { getEventListeners } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import test from 'node:test'

/** Seconds that the machine "slept", as `/proc/uptime` would show; set before the clock is made, which reads it then. */
let sleptS = 0
const uptime = os.uptime
os.uptime = () => uptime() + sleptS
syncBuiltinESMExports()
const { sleep, systemEnvironment } = await import('../../src/environment.js')
const { clock, host, random } = systemEnvironment()
/** False where the boot clock cannot be trusted; then nothing about suspend can be shown here. */
const before = clock.now()
sleptS += 100
await new Promise((resolve) => setTimeout(resolve, 300))
const countsSuspend = clock.now() - before > 50_000
const skip = countsSuspend ? false : 'the boot clock of this machine cannot be read'

const ALIVE = { keepAlive: true }
const real = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('now() counts a suspend within 250 ms of the resume, timers or not', { skip }, async () => {
  const start = clock.now()
  sleptS += 3600
  await real(260)
  assert.ok(clock.now() - start >= 3_600_000)
})

for (const reads of [false, true]) {
  const who = reads ? 'while the clock is read all the time' : 'while nobody reads the clock'
  test(`suspend: a timer that came due during it fires soon after the resume, ${who}`, { skip }, async () => {
    let firedAt = Number.NaN
    const began = performance.now()
    const timer = clock.timer(
      5000,
      () => {
        firedAt = performance.now() - began
      },
      { prompt: true },
    )
    // Not at a multiple of the ticker's period, so that a reader is the first to notice.
    await real(230)
    sleptS += 3600
    const reading = setInterval(() => reads && clock.now(), 3)
    await real(1500)
    clearInterval(reading)
    timer.cancel()
    assert.ok(firedAt < 1500, `it fired after ${firedAt} ms`)
  })
}

test('suspend: a timer made after the resume is not held up by one from before it', { skip }, async () => {
  const earlier = clock.timer(60_000, () => {})
  await real(260)
  sleptS += 3600
  await real(260)
  let firedAt = Number.NaN
  const began = performance.now()
  const timer = clock.timer(50, () => {
    firedAt = performance.now() - began
  })
  await real(1500)
  timer.cancel()
  earlier.cancel()
  assert.ok(firedAt < 1500, `it fired after ${firedAt} ms`)
})

test('timers never fire early, whatever the fraction, and in the order of their times', async () => {
  const late: number[] = []
  const timers = Array.from({ length: 300 }, (_, i) => {
    const due = clock.now() + (i % 37) * 1.37
    return new Promise<void>((resolve) => {
      clock.timer(
        (i % 37) * 1.37,
        () => {
          late.push(clock.now() - due)
          resolve()
        },
        { keepAlive: true },
      )
    })
  })
  await Promise.all(timers)
  assert.equal(late.length, 300)
  assert.ok(Math.min(...late) >= 0, `${Math.min(...late)} ms`)
})

test('a cancelled timer does not fire; cancelling twice, or after it fired, is nothing', async () => {
  let fired = 0
  const cancelled = clock.timer(5, () => fired++)
  cancelled.cancel()
  cancelled.cancel()
  const other = clock.timer(1, () => fired++)
  await real(20)
  other.cancel()
  assert.equal(fired, 1)
})

test('a timer is called in the async context of whoever wanted it', async () => {
  const storage = new AsyncLocalStorage<number>()
  const seen = await Promise.all(
    [30, 10, 20].map((ms) =>
      storage.run(ms, () => new Promise((resolve) => clock.timer(ms, () => resolve([ms, storage.getStore()]), ALIVE))),
    ),
  )
  assert.deepEqual(seen, [
    [30, 30],
    [10, 10],
    [20, 20],
  ])
})

test('now() never goes back, and is not the wall clock', () => {
  let last = clock.now()
  for (let i = 0; i < 20_000; i++) {
    const now = clock.now()
    assert.ok(now >= last)
    last = now
  }
  assert.ok(Math.abs(clock.wall() - Date.now()) < 50)
  assert.ok(last < 1e11)
})

test('sleep ends with its signal at once, resolves, and leaves no listener', async () => {
  const cancel = new AbortController()
  const sleeping = sleep(clock, 60_000, { signal: cancel.signal, keepAlive: true })
  cancel.abort()
  await sleeping
  await sleep(clock, 60_000, { signal: cancel.signal })
  const other = new AbortController()
  await sleep(clock, 1, { signal: other.signal, keepAlive: true })
  assert.deepEqual(
    [getEventListeners(cancel.signal, 'abort').length, getEventListeners(other.signal, 'abort').length],
    [0, 0],
  )
})

test('randomness: 160 bits of text that never repeats, and numbers in [0, 1)', () => {
  const ids = new Set(Array.from({ length: 10_000 }, () => random.id()))
  assert.equal(ids.size, 10_000)
  for (const id of ids) assert.match(id, /^[\w-]{27}$/)
  for (let i = 0; i < 1000; i++) {
    const next = random.next()
    assert.ok(next >= 0 && next < 1)
  }
})

test('the host clock is the one that other processes of this host read', {
  skip: process.platform !== 'linux' && 'Linux only',
}, async () => {
  const { execFileSync } = await import('node:child_process')
  const script = 'process.stdout.write(String(Number(process.hrtime.bigint()) / 1e6))'
  const earlier = host.now()
  const theirs = Number(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }))
  assert.ok(earlier <= theirs && theirs <= host.now())
  assert.match(String(host.identity), /^[0-9a-f-]{36} /)
})
