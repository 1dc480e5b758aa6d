/** The command that ships: one file, made of the same modules that the other tests import one by one. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bench, MAIN } from './support.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const at = bench()

/** Our files that a program ran code of, as V8 itself counts them. */
function filesRun(main: string, args: readonly string[]): string[] {
  const counts = mkdtempSync(join(at.folder, 'counts-'))
  const env = at.env({ NODE_V8_COVERAGE: counts })
  const { status, stderr } = spawnSync(process.execPath, [main, ...args], { env, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  const scripts = readdirSync(counts).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(counts, file), 'utf8')) as { result: { url: string }[] }
    return result.filter(({ url }) => url.startsWith('file:')).map(({ url }) => fileURLToPath(url))
  })
  return scripts.filter((file) => file.startsWith(root) && !file.includes('/node_modules/'))
}

describe('what `run` loads of ours', () => {
  test('is one file', () => {
    assert.deepEqual(filesRun(MAIN, ['run', 'k', '--', 'true']), [MAIN])
  })

  test('control: as the compiler leaves it, it is many', () => {
    const files = filesRun(join(root, 'dist/src/cli/main.js'), ['run', 'k', '--', 'true'])
    assert.ok(files.length > 20, files.join('\n'))
  })
})

test('package.json names the file that the tests run', () => {
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { holdfast: string } }
  assert.equal(join(root, bin.holdfast), MAIN)
  const folder = join(root, 'test')
  const elsewhere = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && file !== 'cli/bundle.test.ts')
    .filter((file) => readFileSync(join(folder, file), 'utf8').includes('src/cli/main.js'))
  assert.deepEqual(elsewhere, [], 'these run something that does not ship')
})

test('every program of the command is bundled, strict, and names no machine', () => {
  const sources = readdirSync(join(root, 'src/cli')).filter((file) => /(?:^|-)main\.ts$/.test(file))
  const programs = readdirSync(dirname(MAIN)).filter((file) => file.endsWith('.js'))
  assert.deepEqual(programs, sources.map((file) => file.replace('.ts', '.js')).sort())
  for (const program of programs) {
    const text = readFileSync(join(dirname(MAIN), program), 'utf8')
    assert.match(text, /^(?:#!.*\n)?'use strict'\n/, program)
    assert.ok(!text.includes(root.replace(/\/$/, '')), `${program} names ${root}`)
  }
})

test('a fault shows a stack with names and lines of the bundle', async () => {
  const breaking = join(at.folder, 'breaking.cjs')
  writeFileSync(breaking, "require('node:os').homedir = () => { throw new RangeError('broken on purpose'); }")
  const env = { HOLDFAST_DEBUG: '1', XDG_STATE_HOME: '', NODE_OPTIONS: `--require ${breaking}` }
  const { code, stderr } = await at.run(['run', 'k', '--', 'true'], { env })
  assert.equal(code, 64)
  assert.match(stderr, /\n.* at homeFolder \(.*\/bundle\/cli\/main\.js:\d+:\d+\)/)
})

test('what can no longer come is a fault, not a success', async () => {
  const mute = join(at.folder, 'mute.cjs')
  writeFileSync(
    mute,
    "const fs = require('node:fs'); const { write } = fs; fs.write = (fd, ...rest) => fd === 1 || write(fd, ...rest)",
  )
  const { code, stderr } = await at.run(['--version'], { env: { NODE_OPTIONS: `--require ${mute}` } })
  assert.equal(code, 70)
  assert.match(stderr, /^holdfast: unexpected: [^\n]+\n$/)
})
