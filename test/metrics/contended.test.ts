import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runChild } from '../support/child.js'
import { byLabel, lint, scrape, withPromtool } from '../support/promtool.js'
import type { Told } from './worker.js'

const PROCESSES = 4

describe(`${PROCESSES} processes that contend on one SQLite file, and lose leases in every way`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-metrics-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  let all: Told[] = []

  before(async () => {
    const runs = Array.from({ length: PROCESSES }, (_, index) =>
      runChild(new URL('./worker.js', import.meta.url), [join(folder, 'leases.db'), `w${index}`]),
    )
    all = (await Promise.all(runs)).map(({ code, stdout, stderr }) => {
      assert.deepEqual([code, stderr], [0, ''])
      return JSON.parse(stdout) as Told
    })
  })

  test('promtool has nothing to say', withPromtool, () => {
    for (const { during, text } of all) assert.deepEqual([lint(during), lint(text)], ['', ''])
  })

  test('control: promtool finds a counter without help, and another that is not called a total', withPromtool, () => {
    const [{ text } = { text: '' }] = all
    assert.match(lint(text.replace(/^# HELP holdfast_lease_acquired_total .*\n/m, '')), /no help text/)
    assert.match(lint(text.replaceAll('holdfast_lease_acquired_total', 'holdfast_lease_acquired')), /"_total" suffix/)
  })

  test('the numbers are those that each process counted', () => {
    for (const told of all) {
      const seen = scrape(told.text)
      assert.equal(seen.get('holdfast_lease_acquired_total'), told.acquired)
      assert.deepEqual(byLabel(seen, 'holdfast_lease_lost_total', 'reason'), told.lost)
      assert.deepEqual(byLabel(seen, 'holdfast_acquire_attempts_total', 'outcome'), told.attempts)
      assert.equal(seen.get('holdfast_heartbeat_latency_seconds_count'), told.renewed)
      assert.equal(seen.get('holdfast_acquire_wait_seconds_count'), told.acquired)
      assert.equal(seen.get('holdfast_lease_hold_seconds_count'), told.ended)
      assert.equal(told.ended, told.acquired)
      assert.equal(scrape(told.during).get('holdfast_leases_held'), told.heldDuring)
      assert.equal(seen.get('holdfast_leases_held'), 0)
    }
  })

  test('it was a contended run, with losses of every kind that can be had here, and seconds are seconds', () => {
    for (const { acquired, lost, attempts, renewed, text, heldForSeconds } of all) {
      assert.deepEqual(Object.keys(lost).sort(), ['closed', 'expired', 'max-hold', 'missing', 'revoked'])
      assert.ok(
        acquired > 30 && renewed > 0 && (attempts.held ?? 0) > 10,
        JSON.stringify({ acquired, renewed, attempts }),
      )
      // From request to grant and from release to answer is counted by one and not by the other.
      const sum = scrape(text).get('holdfast_lease_hold_seconds_sum') ?? 0
      assert.ok(sum > heldForSeconds / 2 && sum < heldForSeconds * 2, `${sum} s, by the handles ${heldForSeconds} s`)
    }
  })
})
