/** The bench runs, without the peers, and counts turns rightly. What it measures is for people to read. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Turn } from '../bench/jobs/contend.js'
import { turnsBetween } from '../bench/support/turns.js'
import { withRedis } from './support/servers/redis.js'

const bench = (...args: string[]) =>
  spawnSync(process.execPath, [fileURLToPath(new URL('../scripts/bench.js', import.meta.url)), ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  })

describe('npm run bench', () => {
  test('prints a table with numbers above 0', withRedis, () => {
    const { status, stdout, stderr } = bench('redis-uncontended', '--quick', '--only', 'raw,holdfast', '--conc', '16')
    assert.equal(status, 0, stderr)
    const cells = /^\| raw ioredis +\|(.*)\|$/m
      .exec(stdout)?.[1]
      ?.split('|')
      .map((cell) => Number(cell.replace(',', '')))
    assert.equal(cells?.length, 5, stdout)
    assert.ok(
      cells.every((cell) => cell > 0),
      stdout,
    )
  })
  test('lists its measurements, and refuses a name or an option that it does not know', () => {
    assert.match(bench('--help').stdout, /^redis +\S.*\n(?:.*\n)*redis-crash /m)
    assert.equal(bench('no-such-bench').status, 64)
    assert.match(bench('--no-such-option').stderr, /--no-such-option/)
    assert.match(bench('redis', '--only', 'nobody').stderr, /--only must name some of raw, /)
  })
})

describe('turns of waiters', () => {
  const turn = (waiter: string, asked: number, held: number, freed: number): Turn => ({ waiter, asked, held, freed })
  const all = [
    turn('a', 0, 100, 105),
    turn('b', 90, 107, 112),
    // The same waiter again: no hand-over.
    turn('b', 130, 140, 145),
    turn('c', 120, 149, 154),
    // Got it after the end, and has waited all the while.
    turn('d', 110, Number.MAX_VALUE, 300),
    // Before the beginning.
    turn('a', 0, 50, 55),
  ]
  test('are counted between two moments', () => {
    assert.deepEqual(turnsBetween(all, 4, 100, 200), {
      perSecond: 40,
      gapP50Ms: 4,
      gapP99Ms: 4,
      longestWaitMs: 100,
      most: 2,
      fewest: 0,
      starved: 1,
      overlaps: 0,
      turns: 4,
    })
  })
  test('control: two that hold at once are noticed', () => {
    assert.equal(turnsBetween([...all, turn('e', 100, 110, 115)], 5, 100, 200).overlaps, 1)
  })
})
