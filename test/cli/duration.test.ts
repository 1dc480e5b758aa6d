import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CliError } from '../../src/cli/exit.js'
import { formatDuration, parseDuration, parseDurationOrForever, writtenDuration } from '../../src/cli/text/duration.js'

const good: [string, number][] = [
  ['500ms', 500],
  ['10s', 10_000],
  ['5m', 300_000],
  ['1h', 3_600_000],
  ['1h30m', 5_400_000],
  ['1m30s500ms', 90_500],
  ['0s', 0],
  ['2d', 172_800_000],
  ['1d1h', 90_000_000],
  ['1.5d', 129_600_000],
  ['0.00000125d', 108],
  ['1.5s', 1_500],
  ['4.35s', 4_350],
  ['0.001s', 1],
  ['2147483647ms', 2 ** 31 - 1],
]
for (const [text, ms] of good) {
  test(`${text} is ${ms} ms`, () => assert.equal(parseDuration('--ttl', text), ms))
}

const bad = [
  '', '10', '-5s', '1e3ms', '10s junk', '5M', ' 5s', '5 s', '5s ', '+5s', '0x10s', '1s1s', '30m1h', '1h1d', '1D', 'PT10S', '10S',
  '2147483648ms', '600h', '30d', '0.000000001d', '99999999999999999999s', '0.5ms', '0.0001s', '1.s', '.5s', '1,5s', 'Infinity', 'NaN', 'forever', 's',
  '1.5h30m', '٣s', '10s\n',
] // biome-ignore format: a list
for (const text of bad) {
  test(`${JSON.stringify(text)} is no duration`, () => {
    assert.throws(
      () => parseDuration('--ttl', text),
      (error) => error instanceof CliError && error.exitCode === 64 && error.message.startsWith('--ttl must be '),
    )
  })
}

test('a number without a unit is told what to write', () => {
  assert.throws(() => parseDuration('--wait', '10'), /for seconds write 10s/)
})

test('forever only where it is allowed', () => {
  assert.equal(parseDurationOrForever('--wait', 'forever'), Number.POSITIVE_INFINITY)
  assert.equal(parseDurationOrForever('--wait', '1s'), 1000)
})

test('what is refused names the units, and forever where that is allowed', () => {
  for (const text of ['Forever', 'FOREVER', 'infinity', '1w', '10', ''])
    assert.throws(
      () => parseDurationOrForever('--wait', text),
      /its unit \(ms, s, m, h or d\), .*, or forever, but got/,
    )
  assert.throws(
    () => parseDurationOrForever('--wait', '30d'),
    /at most 24d20h31m23s647ms .*, or forever, but got "30d"/,
  )
  assert.throws(
    () => parseDuration('--ttl', 'Forever'),
    ({ message }: Error) => !message.includes('or forever') && message.includes('h or d'),
  )
})

test('every duration in a message can be given back as it is shown', () => {
  const lengths = [0, 1, 999, 1_000, 61_001, 3_600_000, 90_061_001, 2 ** 31 - 1]
  for (const ms of lengths) assert.equal(parseDuration('--ttl', writtenDuration(ms)), ms)
  assert.equal(writtenDuration(90_061_001), '1d1h1m1s1ms')
})

test('durations for people', () => {
  const shown = [0, 850, 1_000, 3_456, 12_345, 60_000, 185_000, 7_440_000, 86_400_000, 531_000_000].map(formatDuration)
  assert.deepEqual(shown, ['0ms', '850ms', '1s', '3.4s', '12s', '1m', '3m 5s', '2h 4m', '1d', '6d 3h'])
})
