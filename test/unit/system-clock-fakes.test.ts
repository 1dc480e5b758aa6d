/** The system's clock on fake timers: waits longer than Node's longest timer, and what a mocked process cannot reach. */
import assert from 'node:assert/strict'
import test from 'node:test'

interface Armed {
  readonly callback: () => void
  readonly ms: number
  cleared: boolean
  unrefed: boolean
  ref(): void
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
    ref() {
      timer.unrefed = false
    },
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
  for (const [ms, expected] of [
    [0.2, 2],
    [10.1, 12],
  ] as const) {
    armed.length = 0
    const timer = clock.timer(ms, () => {})
    assert.deepEqual(
      armed.map((each) => each.ms),
      [expected],
    )
    timer.cancel()
    fire()
  }
})

test('timers keep a process running only where that was asked for, and as long as one of those is to come', () => {
  armed.length = 0
  const unrefed = () => armed.filter(({ cleared }) => !cleared).map((each) => each.unrefed)
  const weak = [clock.timer(10, () => {}), clock.timer(20, () => {}, { keepAlive: false })]
  assert.deepEqual(unrefed(), [true])
  const strong = [clock.timer(30, () => {}, { keepAlive: true }), clock.timer(5, () => {}, { keepAlive: true })]
  assert.deepEqual(unrefed(), [false])
  fire()
  assert.deepEqual(unrefed(), [false])
  for (const timer of strong) timer.cancel()
  for (const timer of strong) timer.cancel()
  assert.deepEqual(unrefed(), [true])
  for (const timer of weak) timer.cancel()
  fire()
  assert.deepEqual(unrefed(), [])
})

test('Node has one timer, for the earliest: it is left alone when that is cancelled, and fires once for nothing', () => {
  armed.length = 0
  const fired: string[] = []
  const cancelled = clock.timer(10, () => fired.push('cancelled'))
  clock.timer(50, () => fired.push('50'))
  clock.timer(60, () => fired.push('60'))
  clock.timer(50, () => fired.push('50, too'))
  cancelled.cancel()
  assert.equal(armed.length, 1)
  fire()
  assert.deepEqual([fired, armed.length], [[], 2])
  fire()
  assert.deepEqual(fired, ['50', '50, too'])
  fire()
  assert.deepEqual([fired.length, armed.length], [3, 3])
})

test('a timer for now, made while those that are due are called, waits for the next turn', () => {
  armed.length = 0
  const fired: string[] = []
  clock.timer(5, () => {
    fired.push('first')
    clock.timer(Number.NaN, () => fired.push('for now'))
  })
  clock.timer(5, () => fired.push('second'))
  fire()
  assert.deepEqual(fired, ['first', 'second'])
  fire()
  assert.deepEqual(fired, ['first', 'second', 'for now'])
})

test('one that throws keeps none of the others from being called', () => {
  armed.length = 0
  let fired = 0
  clock.timer(5, () => {
    throw new Error('from a callback')
  })
  clock.timer(5, () => fired++)
  assert.throws(fire, /from a callback/)
  assert.equal(fired, 0)
  fire()
  assert.equal(fired, 1)
})

test('thousands that are cancelled are not kept: the rest fire in their order', () => {
  armed.length = 0
  const fired: number[] = []
  const timers = Array.from({ length: 5000 }, (_, i) => clock.timer(((i * 7919) % 5000) + 1, () => fired.push(i)))
  for (const [i, timer] of timers.entries()) if (i % 100 > 0) timer.cancel()
  while (fired.length < 50) fire()
  const times = fired.map((i) => (i * 7919) % 5000)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
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
