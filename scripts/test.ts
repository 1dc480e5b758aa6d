/**
 * Runs every built test file, or those whose path contains one of the words given: `npm test -- sqlite`.
 *
 * One file at a time: many tests measure how soon something happens, and on a small machine two files at once measure
 * each other. A test or a file that has not ended after five minutes has failed; without that limit a hung one would
 * hide every result.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const words = process.argv.slice(2)

const files = readdirSync(join(root, 'dist/test'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js'))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()
  .map((file) => join('dist/test', file))

if (files.length === 0) {
  console.error(`no test file matches ${words.join(' ')}`)
  process.exit(1)
}

// TAP where nobody watches: its summary comes last, and is what machines look for.
const reporter = process.stdout.isTTY ? 'spec' : 'tap'
const flags = ['--test', '--test-concurrency=1', '--test-timeout=300000', `--test-reporter=${reporter}`]
const { status } = spawnSync(process.execPath, [...flags, ...files], { cwd: root, stdio: 'inherit' })
process.exit(status ?? 1)
