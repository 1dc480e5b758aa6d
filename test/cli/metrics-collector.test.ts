/** The files of `run --metrics-file` as node_exporter's textfile collector reads them: all of a folder, as one. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { OUTCOMES } from '../../src/cli/metrics/run-metrics.js'
import { byLabel, scrape } from '../support/promtool.js'
import { needs } from '../support/sqlite-hosts.js'
import { bench } from './support.js'

const EXPORTER = 'prometheus-node-exporter'
const withExporter = needs(
  spawnSync(EXPORTER, ['--version']).status === 0,
  `needs node_exporter, of Debian's package ${EXPORTER}`,
)
/** It runs as a user of its own, who can read what everybody can. */
const AS_ANOTHER = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', EXPORTER]
const cli = bench()

/** What it exports of a folder, and what it complains of. */
async function collected(folder: string): Promise<{ text: string; log: string }> {
  chmodSync(cli.folder, 0o755)
  const [command = EXPORTER, ...before] = process.getuid?.() === 0 ? AS_ANOTHER : [EXPORTER]
  const exporter = cli.spawn(command, [
    ...before,
    '--collector.disable-defaults',
    '--collector.textfile',
    `--collector.textfile.directory=${folder}`,
    '--web.listen-address=127.0.0.1:0',
  ])
  const [, port] = await exporter.saw(/address=127\.0\.0\.1:(\d+)/)
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  exporter.process.kill()
  const { stderr } = await exporter.ended
  const complaints = stderr.split('\n').filter((line) => /level=(?!info)/.test(line))
  return { text, log: complaints.join('\n') }
}

test(
  'two jobs with one key, and one whose name and key are odd: every series arrives, once',
  withExporter,
  async () => {
    const folder = join(cli.folder, 'collected')
    mkdirSync(folder)
    const jobs = [
      ['backup', 'database', 'true'],
      ['vacuum', 'database', 'false'],
      ['a "b" c', 'odd\\key"\n', 'true'],
    ] as const
    for (const [file, key, command] of jobs) {
      await cli.run(['run', '--metrics-file', join(folder, `${file}.prom`), key, '--', command])
    }
    const { text, log } = await collected(folder)
    assert.equal(log, '')
    const seen = scrape(text)
    assert.equal(seen.get('node_textfile_scrape_error'), 0)
    const name = 'holdfast_last_run_exit_code'
    assert.equal(seen.get(`${name}{file="backup",key="database"}`), 0)
    assert.equal(seen.get(`${name}{file="vacuum",key="database"}`), 1)
    assert.equal(seen.get(`${name}{file="a \\"b\\" c",key="odd\\\\key\\"\\n"}`), 0)
    const runs = [...seen.keys()].filter((series) => series.startsWith('holdfast_runs_total{'))
    assert.equal(runs.length, 3 * OUTCOMES.length)
    assert.deepEqual(Object.keys(byLabel(seen, 'holdfast_last_run_outcome', 'outcome')).sort(), ['completed', 'failed'])
  },
)

test(
  'control: it refuses series that are there twice, as they would be without the name of the file',
  withExporter,
  async () => {
    const folder = join(cli.folder, 'twice')
    mkdirSync(folder)
    const file = join(folder, 'a.prom')
    await cli.run(['run', '--metrics-file', file, 'k', '--', 'true'])
    assert.equal((await collected(folder)).log, '')
    copyFileSync(file, join(folder, 'b.prom'))
    assert.match((await collected(folder)).log, /collected before with the same name and label values/)
  },
)
