import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AttemptEvent, Reminders, WaitState } from '../../src/cli/run/wait-state.js'
import { fitted } from '../../src/cli/text/live-terminal.js'
import { isoTime, localTime } from '../../src/cli/text/wall-time.js'

const event = (facts: Partial<AttemptEvent>): AttemptEvent => ({
  ...{ type: 'attempt', namespace: 'n', key: 'k', store: 's', durationMs: 1, attempt: 2, outcome: 'held' },
  ...facts,
})

test('each change is told once; the holders of a busy key every five seconds at most', () => {
  const state = new WaitState()
  const told: string[] = []
  const see = (now: number, facts: Partial<AttemptEvent>) => {
    const change = state.changed(event(facts), now)
    if (change) told.push(`${now} ${change.is.kind}${change.is.kind === 'held' ? ` ${change.is.holder}` : ''}`)
  }
  for (let now = 0; now < 20_000; now += 100) see(now, { holder: `h${now}` })
  see(20_000, { outcome: 'unavailable', error: new Error('one') })
  see(20_100, { outcome: 'unavailable', error: new Error('two') })
  see(20_200, { holder: 'h' })
  see(20_300, { holder: 'h' })
  see(20_400, { outcome: 'not-ready', why: 'w' })
  see(20_500, { outcome: 'granted' })
  assert.deepEqual(told, [
    ...['0 held h0', '5000 held h5000', '10000 held h10000', '15000 held h15000'],
    ...['20000 unavailable', '20200 held h', '20400 not-ready'],
  ])
})

test('a store that was restarted once more, and so is ready later than it said, is told again', () => {
  const state = new WaitState()
  const told = (now: number, why: string, retryAfterMs: number) =>
    state.changed(event({ outcome: 'not-ready', why, retryAfterMs }), now) !== null
  assert.ok(told(0, 'started 1 s ago', 10_000))
  assert.ok(!told(5_000, 'started 6 s ago', 5_400))
  assert.ok(told(6_000, 'started 0 s ago', 11_000))
  // Who always asks for the same moment of patience tells nothing new.
  assert.ok(!told(20_000, 'started 0 s ago', 11_000))
})

test('a first question without an answer is no wait', () => {
  const first = event({ attempt: 1, outcome: 'unavailable', error: new Error('one') })
  assert.equal(new WaitState().changed(first, 0), null)
})

test('a long wait is told again after 1, 3, 7 … minutes, then once an hour', () => {
  const reminders = new Reminders(5)
  const minutes: number[] = []
  for (let now = 5; now < 12 * 3_600_000; now += 1_000) if (reminders.due(now)) minutes.push(Math.floor(now / 60_000))
  assert.deepEqual(minutes.slice(0, 6), [1, 3, 7, 15, 31, 63])
  assert.deepEqual(
    minutes.slice(6).map((at, index) => at - (minutes[5 + index] ?? 0)),
    Array(minutes.length - 6).fill(60),
  )
})

test('cut to the width of a terminal, characters of two columns too', () => {
  const columns = (text: string) => [...text].reduce((sum, each) => sum + (each < '\x80' ? 1 : 2), 0)
  for (const text of ['short', 'x'.repeat(200), '鍵'.repeat(100), 'a鍵😀'.repeat(50), ''])
    for (let width = 4; width < 250; width++) {
      const line = fitted(text, width)
      assert.ok(columns(line) < width, `${width}: ${line}`)
      if (columns(text) < width) assert.equal(line, text)
      else assert.ok(line.endsWith('…') && columns(line) >= width - 4, `${width}: ${line}`)
    }
})

test('moments: of today by their time, of other days with their date', () => {
  const noon = new Date(2026, 2, 4, 12, 0, 0).getTime()
  assert.equal(localTime(noon - 3_600_000, noon), '11:00:00')
  assert.equal(localTime(noon - 24 * 3_600_000, noon), '2026-03-03 12:00:00')
  assert.equal(isoTime(0), '1970-01-01T00:00:00.000Z')
})
