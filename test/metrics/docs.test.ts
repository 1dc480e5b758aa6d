/** `docs/metrics.md` says what there is, and its alerts go off when they should. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { RUN_METRICS } from '../../src/cli/metrics/run-metrics.js'
import { METRICS, type Metric } from '../../src/metrics/table.js'
import { codeBlocks } from '../support/markdown.js'
import { withPromtool } from '../support/promtool.js'

const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
const rules = codeBlocks('docs/metrics.md', page).find(({ language }) => language === 'yaml')?.code ?? ''
const metrics: Metric[] = [...Object.values(METRICS), ...Object.values(RUN_METRICS)]

const folder = mkdtempSync(join(tmpdir(), 'holdfast-rules-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('every metric, and every value of its label, is on the page; and no other', () => {
  for (const { name, label } of metrics) {
    const written = label ? `\`${name}{${label.name}}\`` : `\`${name}\``
    assert.ok(page.includes(written), written)
    for (const value of label?.values ?? []) assert.ok(page.includes(`\`${value}\``), `${name} ${value}`)
  }
  const names = new Set(metrics.map(({ name }) => name))
  const strange = [...page.matchAll(/holdfast_\w+/g)]
    .map(([name]) => name.replace(/_bucket$/, ''))
    .filter((name) => !names.has(name))
  assert.deepEqual(strange, [])
})

/** The alerts that go off at the end of two hours of these series, which are given once a minute. */
function alertsAfter(series: Record<string, string>): string[] {
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name = '']) => name)
  writeFileSync(join(folder, 'rules.yaml'), rules)
  return alerts.filter((name) => {
    const lines = [
      'rule_files: [rules.yaml]',
      'tests:',
      '  - interval: 1m',
      '    input_series:',
      ...Object.entries(series).flatMap(([each, values]) => [
        `      - series: '${each}'`,
        `        values: '${values}'`,
      ]),
      `    alert_rule_test: [{ eval_time: 2h, alertname: ${name}, exp_alerts: [] }]`,
    ]
    writeFileSync(join(folder, 'test.yaml'), lines.join('\n'))
    const { status, stderr, stdout } = spawnSync('promtool', ['test', 'rules', 'test.yaml'], {
      cwd: folder,
      encoding: 'utf8',
    })
    if (status !== 0) assert.match(stdout + stderr, /got:/, 'it failed for another reason than an alert')
    return status !== 0
  })
}

test('promtool takes the alerts', withPromtool, () => {
  writeFileSync(join(folder, 'rules.yaml'), rules)
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', 'rules.yaml'], {
    cwd: folder,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /6 rules found/)
})

test('all is well: none goes off. Each kind of trouble: the one that is meant', withPromtool, () => {
  const well = {
    'holdfast_last_success_timestamp_seconds{file="nightly",key="k"}': '0+60x130',
    'holdfast_lease_lost_total{reason="expired"}': '3x130',
    'holdfast_lease_lost_total{reason="closed"}': '0+1x130',
    'holdfast_last_run_outcome{outcome="lost"}': '0x130',
    'holdfast_acquire_wait_seconds_bucket{le="60"}': '0+10x130',
    'holdfast_acquire_wait_seconds_bucket{le="300"}': '0+10x130',
    'holdfast_acquire_wait_seconds_bucket{le="+Inf"}': '0+10x130',
    'holdfast_heartbeat_latency_seconds_bucket{le="0.5"}': '0+20x130',
    'holdfast_heartbeat_latency_seconds_bucket{le="1"}': '0+20x130',
    'holdfast_heartbeat_latency_seconds_bucket{le="+Inf"}': '0+20x130',
    'holdfast_acquire_attempts_total{outcome="unavailable"}': '7x130',
  }
  assert.deepEqual(alertsAfter(well), [])
  const success = 'holdfast_last_success_timestamp_seconds{file="nightly",key="k"}'
  const { [success]: _, ...unseen } = well
  assert.deepEqual(alertsAfter({ ...well, [success]: '-90000x130' }), ['JobNotDone'])
  assert.deepEqual(alertsAfter(unseen), ['JobNeverSeen'])
  const lost = { 'holdfast_lease_lost_total{reason="expired"}': '3x100 4x29' }
  assert.deepEqual(alertsAfter({ ...well, ...lost }), ['LeaseLost'])
  assert.deepEqual(alertsAfter({ ...well, 'holdfast_last_run_outcome{outcome="lost"}': '0x100 1x29' }), ['LeaseLost'])
  const late = { 'holdfast_acquire_wait_seconds_bucket{le="60"}': '0+8x130' }
  assert.deepEqual(alertsAfter({ ...well, ...late }), ['WaitingLong'])
  const slow = { 'holdfast_heartbeat_latency_seconds_bucket{le="0.5"}': '0+2x130' }
  assert.deepEqual(alertsAfter({ ...well, ...slow }), ['HeartbeatSlow'])
  const silent = { 'holdfast_acquire_attempts_total{outcome="unavailable"}': '0+5x130' }
  assert.deepEqual(alertsAfter({ ...well, ...silent }), ['StoreUnavailable'])
})
