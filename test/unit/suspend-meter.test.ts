import assert from 'node:assert/strict'
import test from 'node:test'
import { SeededRandom } from '../../src/simulation/index.js'
import { SuspendMeter } from '../../src/suspend-meter.js'

const HOUR_MS = 3_600_000

/** A machine whose two clocks are as Linux shows them; reading takes time, and sometimes much. */
function machine(seed = 1) {
  const random = new SeededRandom(seed)
  const state = { mono: 5_000, slept: 1_234.5, bootOffset: 0, stalls: 0, readsBoot: 0, fixedBoot: Number.NaN }
  const pass = () => {
    state.mono += random.next() * 0.01
    if (state.stalls > 0 && random.chance(0.5)) {
      state.stalls--
      state.mono += random.next() * 300
    }
  }
  const meter = new SuspendMeter(
    () => {
      pass()
      state.readsBoot++
      // In steps of 10 ms, rounded down.
      return Number.isNaN(state.fixedBoot)
        ? Math.floor((state.mono + state.slept + state.bootOffset) / 10) * 10
        : state.fixedBoot
    },
    () => {
      pass()
      return state.mono
    },
  )
  const look = (times = 1, gapMs = 37.7) => {
    for (let i = 0; i < times; i++) {
      state.mono += gapMs * random.next() * 2
      meter.look()
    }
  }
  return { state, meter, look }
}

test('a suspend of an hour is noticed with the next look, and never underestimated', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const { state, meter, look } = machine(seed)
    look(seed % 7)
    const before = meter.suspended
    look()
    state.slept += HOUR_MS
    look()
    assert.ok(
      meter.suspended - before >= HOUR_MS && meter.suspended - before < HOUR_MS + 25,
      `seed ${seed}: ${meter.suspended}`,
    )
  }
})

test('without suspend nothing is counted, however often one looks and however long the process is stalled', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { state, meter, look } = machine(seed)
    look(2000)
    state.stalls = 500
    look(2000)
    assert.equal(meter.suspended, 0, `seed ${seed}`)
  }
})

test('suspends add up; short ones are seen once they exceed the resolution of the file', () => {
  const { state, meter, look } = machine()
  look(50)
  let slept = 0
  for (const ms of [500, 30, 60_000, 25, HOUR_MS]) {
    state.slept += ms
    slept += ms
    look(20)
    assert.ok(meter.suspended >= slept, `${meter.suspended} of ${slept}`)
    assert.ok(meter.suspended < slept + 120, `${meter.suspended} of ${slept}`)
  }
})

test('a suspend below the resolution may be missed, by no more than that', () => {
  const { state, meter, look } = machine()
  look(50)
  state.slept += 9
  look(50)
  assert.ok(meter.suspended <= 9 + 25)
})

test('/proc/uptime that stands still, or goes back, never makes time go back and never throws', () => {
  const { state, meter, look } = machine()
  look(10)
  state.fixedBoot = 6_000
  look(100)
  assert.equal(meter.suspended, 0)
  state.fixedBoot = Number.NaN
  state.slept += HOUR_MS
  look(5)
  const counted = meter.suspended
  assert.ok(counted >= HOUR_MS)
  state.bootOffset = -2 * HOUR_MS
  look(100)
  assert.equal(meter.suspended, counted)
})

test('/proc/uptime that is invented and jumps forward costs leases, it never prolongs one', () => {
  const { state, meter, look } = machine()
  look(10)
  for (let i = 1; i <= 10; i++) {
    state.bootOffset += 1000
    look()
    assert.ok(meter.suspended >= 1000 * i)
  }
})

test('a stall between the reads is read again, at most three times for one look', () => {
  const { state, meter, look } = machine()
  look()
  state.stalls = 1000
  const before = state.readsBoot
  meter.look()
  assert.ok(state.readsBoot - before <= 3)
})
