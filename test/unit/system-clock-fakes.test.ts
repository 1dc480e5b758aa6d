/** The system's clock on fake timers: waits longer than Node's longest timer, and what a mocked process cannot reach. */
import assert from 'node:assert/strict'
import test from 'node:test'

interface Armed {
  readonly callback: () => void
  readonly ms: number
  cleared: boolean
  unrefed: boolean
  unref(): void
}

let now = 1000
const armed: Armed[] = []
const original = { setTimeout, clearTimeout, setInterval, performanceNow: performance.now, dateNow: Date.now }
const fakeTimer = (callback: () => void, ms: number): Armed => {
  const timer: Armed = {
    callback,
    ms,
    cleared: false,
    unrefed: false,
    unref() {
      timer.unrefed = true
    },
  }
  armed.push(timer)
  return timer
}
Object.assign(globalThis, {
  setTimeout: fakeTimer,
  setInterval: () => ({ unref() {} }),
  clearTimeout: (timer?: Armed) => {
    if (timer) timer.cleared = true
  },
})
performance.now = () => now
const { systemEnvironment } = await import('../../src/environment.js')
const { clock } = systemEnvironment()
Object.assign(globalThis, {
  setTimeout: original.setTimeout,
  clearTimeout: original.clearTimeout,
  setInterval: original.setInterval,
})
performance.now = original.performanceNow

/** Lets the only armed timer fire when its time has come, less what Node's timers are early by. */
function fire(earlyMs = 0): void {
  const [timer, ...more] = armed.filter(({ cleared }) => !cleared)
  assert.ok(timer && more.length === 0, 'exactly one timer must be armed')
  timer.cleared = true
  now += timer.ms - earlyMs
  timer.callback()
}

test('a wait beyond 2^31-1 ms is a chain of timers, none of them longer, and ends when it should', () => {
  armed.length = 0
  const began = clock.now()
  let firedAfter = Number.NaN
  clock.timer(3 * 2 ** 31, () => {
    firedAfter = clock.now() - began
  })
  for (let links = 0; links < 3; links++) {
    fire()
    assert.ok(Number.isNaN(firedAfter))
  }
  fire()
  assert.equal(firedAfter, 3 * 2 ** 31 + 1)
  assert.deepEqual(
    armed.map(({ ms }) => ms),
    [2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 4],
  )
})

test('a timer that Node fires early is armed again for the rest', () => {
  armed.length = 0
  const began = clock.now()
  let firedAfter = Number.NaN
  clock.timer(50, () => {
    firedAfter = clock.now() - began
  })
  fire(1.7)
  assert.ok(Number.isNaN(firedAfter))
  fire()
  assert.ok(firedAfter >= 50 && firedAfter < 53, String(firedAfter))
})

test('fractions of a millisecond are rounded up, and one is added for the turn of the loop', () => {
  armed.length = 0
  clock.timer(0.2, () => {}).cancel()
  clock.timer(10.1, () => {}).cancel()
  assert.deepEqual(
    armed.map(({ ms }) => ms),
    [2, 12],
  )
})

test('timers keep a process running only where that was asked for', () => {
  armed.length = 0
  clock.timer(10, () => {}).cancel()
  clock.timer(10, () => {}, { keepAlive: false }).cancel()
  clock.timer(10, () => {}, { keepAlive: true }).cancel()
  assert.deepEqual(
    armed.map(({ unrefed }) => unrefed),
    [true, true, false],
  )
})

test('B152: mocking Date.now, performance.now or the timers later reaches no deadline', () => {
  armed.length = 0
  Date.now = () => 0
  performance.now = () => 0
  globalThis.setTimeout = (() => assert.fail('the mocked one')) as never
  try {
    const began = clock.now()
    clock.timer(5, () => {}).cancel()
    assert.equal(began, now)
    assert.ok(clock.wall() > 1e12)
  } finally {
    Date.now = original.dateNow
    performance.now = original.performanceNow
    globalThis.setTimeout = original.setTimeout
  }
  assert.equal(armed.length, 1)
})
