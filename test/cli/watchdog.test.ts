/** A command never outlives its lease, whatever becomes of holdfast. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judge, LOSSES, type Loss, round } from '../support/run-losses.js'
import { bench } from './support.js'

const cli = bench()

/** What holdfast itself ends with. */
const CODES: Record<Loss, number | null> = {
  hang: null,
  error: 76,
  revoke: 76,
  stop: 76,
  kill: null,
  watchdog: null,
  both: null,
  sentinel: null,
  all: null,
}

describe('B208, B210: the whole family is dead before the next command starts', () => {
  for (const [loss, what] of Object.entries(LOSSES) as [Loss, string][]) {
    if (loss === 'all') continue
    test(what, async () => {
      const seen = await round(cli, loss, '1s', 50)
      judge(loss, seen)
      assert.equal(seen.code, CODES[loss], seen.stderr)
    })
  }

  test('control: with all three gone nobody ends the command, and the judge notices', async () => {
    const seen = await round(cli, 'all', '1s', 50)
    assert.throws(() => judge('all', seen), /command.+still ran/)
  })
})
