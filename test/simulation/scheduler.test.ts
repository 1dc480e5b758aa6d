import assert from 'node:assert/strict'
import test from 'node:test'
import { sleep } from '../../src/index.js'
import { Scheduler, SeededRandom, virtualEnvironment } from '../../src/simulation/index.js'

test('events run in the order of their times, and of their making where the times are equal', async () => {
  const scheduler = new Scheduler()
  const random = new SeededRandom(7)
  const made = Array.from({ length: 2000 }, (_, n) => ({ n, time: random.below(50) }))
  const ran: typeof made = []
  for (const each of made) scheduler.at(each.time, () => ran.push(each))
  await scheduler.advance(50)
  assert.deepEqual(
    ran,
    [...made].sort((a, b) => a.time - b.time || a.n - b.n),
  )
})

test('what is settled runs to its end before the next event, through any number of steps', async () => {
  const scheduler = new Scheduler()
  const ran: string[] = []
  const long = async (name: string) => {
    for (let i = 0; i < 50; i++) await null
    await new Promise((resolve) => process.nextTick(resolve))
    ran.push(name)
  }
  for (let n = 0; n < 200; n++) {
    scheduler.at(n, () => void long(`end of ${n}`))
    scheduler.at(n, () => ran.push(`after ${n}`))
  }
  await scheduler.advance(10)
  await scheduler.advance(200)
  assert.deepEqual(ran, Array.from({ length: 200 }, (_, n) => [`end of ${n}`, `after ${n}`]).flat())
})

test('advance stops exactly where it was told, and what was due later has not run', async () => {
  const scheduler = new Scheduler()
  const ran: number[] = []
  for (const time of [5, 10, 10.5]) scheduler.at(time, () => ran.push(time))
  await scheduler.advance(10)
  assert.deepEqual([scheduler.now, ran, scheduler.pending], [10, [5, 10], 1])
})

test('a cancelled event does not run, and does not stay in memory until its time', async () => {
  const scheduler = new Scheduler()
  const ran: number[] = []
  scheduler.at(2, () => ran.push(2))
  for (let n = 0; n < 10_000; n++) scheduler.at(1_000_000, () => ran.push(n)).cancel()
  assert.equal(scheduler.pending, 1)
  await scheduler.advance(2_000_000)
  assert.deepEqual(ran, [2])
})

test('runUntil gives the result or the error of the work, at the time when it settles', async () => {
  const env = virtualEnvironment(1)
  const slow = sleep(env.clock, 250).then(() => 'done')
  assert.equal(await env.runUntil(slow), 'done')
  assert.equal(env.scheduler.now, 250)
  await assert.rejects(env.runUntil(Promise.reject(new Error('no'))), /^Error: no$/)
})

test('runUntil says "stuck" when nothing is left that could settle the work, and gives up at its limit', async () => {
  const env = virtualEnvironment(1)
  const never = new Promise<void>(() => {})
  await assert.rejects(env.runUntil(never), /stuck at 0 ms/)
  const tick = () => void env.clock.timer(10, tick)
  tick()
  await assert.rejects(env.runUntil(never, 500), /not settled within 500 ms/)
})

test('two drivers at once are refused', async () => {
  const scheduler = new Scheduler()
  const first = scheduler.advance(10)
  await assert.rejects(scheduler.advance(10), /already being driven/)
  await first
})

test('randomness comes again with its seed; a fork depends on the seed and its name only', () => {
  const draw = (random: SeededRandom) => [random.next(), random.id(), random.below(1000), random.chance(0.5)]
  assert.deepEqual(draw(new SeededRandom(3)), draw(new SeededRandom('3')))
  assert.notDeepEqual(draw(new SeededRandom(3)), draw(new SeededRandom(4)))
  const used = new SeededRandom(3)
  draw(used)
  assert.deepEqual(draw(used.fork('a')), draw(new SeededRandom(3).fork('a')))
  assert.notDeepEqual(draw(used.fork('a')), draw(used.fork('b')))
  assert.equal(new SeededRandom(3).id().length, 27)
})

test('randomness is spread evenly enough for jitter', () => {
  const random = new SeededRandom(5)
  const tenths = new Array<number>(10).fill(0)
  for (let i = 0; i < 10_000; i++) {
    const at = random.below(10)
    tenths[at] = (tenths[at] ?? 0) + 1
  }
  for (const count of tenths) assert.ok(count > 850 && count < 1150, String(tenths))
})
