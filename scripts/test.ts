/**
 * Runs every built test file, or those whose path contains one of the words given: `npm test -- sqlite`.
 *
 * One file at a time: many tests measure how soon something happens, and on a small machine two files at once measure
 * each other. Those of the Redis store, of examples and of documents wait most of the time, each with servers and folders of its own, and allow
 * for a busy machine: they come last, two at once, but for the Redis tests that measure. A test or a file that has not ended after five
 * minutes has failed; without that limit a hung one would hide every result.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const words = process.argv.slice(2)
const SIDE_BY_SIDE = /stores\/redis|examples|docs/
const MEASURES = /redis-(?:lost-replies|hung|hidden-restart|many-waiters)/
const LANES = 2

const files = readdirSync(join(root, 'dist/test'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js'))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()

if (files.length === 0) {
  console.error(`no test file matches ${words.join(' ')}`)
  process.exit(1)
}

/** The counts of the summary, which is printed once for all. */
const totals = new Map<string, number>()
let failed = false

async function run(these: readonly string[], concurrency: number): Promise<void> {
  if (these.length === 0) return
  // TAP where nobody watches: its summary comes last, and is what machines look for.
  const reporter = process.stdout.isTTY ? 'spec' : 'tap'
  const flags = ['--test', `--test-concurrency=${concurrency}`, '--test-timeout=300000', `--test-reporter=${reporter}`]
  const paths = these.map((file) => join('dist/test', file))
  const child = spawn(process.execPath, [...flags, ...paths], { cwd: root, stdio: ['inherit', 'pipe', 'inherit'] })
  let tail = ''
  child.stdout.on('data', (chunk: Buffer) => {
    process.stdout.write(chunk)
    tail = (tail + chunk).slice(-2_000)
  })
  const [status] = await once(child, 'close')
  failed ||= status !== 0
  for (const [, name = '', count = ''] of tail.matchAll(
    /^(?:#|ℹ) (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/gm,
  )) {
    totals.set(name, (totals.get(name) ?? 0) + Number(count))
  }
}

const aside = (file: string) => SIDE_BY_SIDE.test(file) && !MEASURES.test(file)
await run(
  files.filter((file) => !aside(file)),
  1,
)
await run(files.filter(aside), LANES)
console.log('# in all')
for (const [name, count] of totals) console.log(`# ${name} ${count}`)
process.exit(failed ? 1 : 0)
