/** The store of docs/adding-a-store.md, compiled and certified exactly as the page prints it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { codeBlocks } from './support/markdown.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-adding-a-store-'))
after(() => rmSync(folder, { recursive: true, force: true }))

mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
symlinkSync(root, join(folder, 'node_modules/holdfast'))
for (const name of ['@types/node', 'undici-types']) {
  symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
}

const page = readFileSync(join(root, 'docs/adding-a-store.md'), 'utf8')
const [store = '', suite = ''] = codeBlocks('docs/adding-a-store.md', page)
  .filter(({ language }) => language === 'ts')
  .map(({ code }) => code)

/** Compiles the two blocks in a folder of their own, strictly, and runs the second. */
function certify(name: string, storeText: string): { status: number | null; failed: string[]; output: string } {
  const project = join(folder, name)
  mkdirSync(project)
  writeFileSync(join(project, 'map-store.mts'), storeText)
  writeFileSync(join(project, 'map-store.test.mts'), suite)
  const compilerOptions = {
    target: 'ES2023',
    module: 'nodenext',
    lib: ['ES2023', 'ESNext.Disposable'],
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    outDir: 'out',
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const compiled = spawnSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' })
  assert.equal(compiled.stdout, '', 'the page must compile')

  // Not as a child of this test runner, whose protocol it would speak.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--test', '--test-reporter=tap', join(project, 'out/map-store.test.mjs')]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, env, encoding: 'utf8' })
  const failed = [...stdout.matchAll(/^not ok \d+ - (map: .*)$/gm)].map(([, test = '']) => test)
  return { status, failed, output: stdout + stderr }
}

test('the store on the page passes the suite on the page', () => {
  const { status, failed, output } = certify('right', store)
  assert.deepEqual(failed, [])
  assert.equal(status, 0, output)
  assert.ok(Number(/^# pass (\d+)$/m.exec(output)?.[1]) > 40, output)
})

test('control: the same store without its owner check does not', () => {
  const careless = store.replace(
    'if (row.owner !== owner || row.fence !== fence) return',
    'if (row.fence !== fence) return',
  )
  assert.notEqual(careless, store)
  const { status, failed } = certify('careless', careless)
  assert.deepEqual(failed, ['map: renew: only for its owner, whoever knows the fence'])
  assert.notEqual(status, 0)
})
