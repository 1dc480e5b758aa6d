/**
 * What a user gets: the tarball, installed in an empty folder without any optional peer, with only what every machine
 * has. Nothing is downloaded.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { exportedNames } from './support/api-names.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const snapshotFile = join(root, 'test/api-snapshot.json')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string
  exports: Record<string, string | { types: string; default: string }>
  bin: Record<string, string>
}
/** `'.'`, `'./sqlite'` …, with the files behind them. */
const subpaths = Object.entries(manifest.exports).flatMap(([path, target]) =>
  typeof target === 'string' ? [] : [{ path, ...target, specifier: path.replace(/^\./, 'holdfast') }],
)

let folder = ''
let tarball = ''
let packed: string[] = []
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
  const listing = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root)
  const [pack] = JSON.parse(listing.stdout) as [{ filename: string; files: { path: string }[] }]
  tarball = join(folder, pack.filename)
  packed = pack.files.map((file) => file.path).sort()
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true }))
  run('npm', ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', tarball], folder)
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Runs to the end, with success, and with nothing on stderr. */
function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = process.env) {
  const result = spawnSync(command, args, { cwd, env, encoding: 'utf8' })
  const { status, stdout, stderr } = result
  assert.equal(status, 0, `${command} ${args.join(' ')} ended with ${status ?? result.error}\n${stdout}\n${stderr}`)
  return result
}

const ourTool = (name: string, args: string[]) => run(join(root, 'node_modules/.bin', name), args, folder)

test('the tarball holds what ships and nothing else', () => {
  const strange = packed.filter(
    (path) =>
      !/^(?:package\.json|README\.md|LICENSE|dist\/src\/(?!cli\/).+\.(?:js|d\.ts)|dist\/bundle\/cli\/(?:[\w-]*main\.js|holdfast\.1|package\.json))$/.test(
        path,
      ),
  )
  assert.deepEqual(strange, [])
  const promised = [
    'README.md',
    'LICENSE',
    ...Object.values(manifest.bin),
    ...subpaths.flatMap((each) => [each.types, each.default]),
  ]
  const missing = promised.map((path) => path.replace(/^\.\//, '')).filter((path) => !packed.includes(path))
  assert.deepEqual(missing, [])
})

test('it installs alone: no dependency, no optional peer', () => {
  const installed = run('npm', ['ls', '--all', '--parseable', '--long'], folder).stdout.trim().split('\n')
  assert.equal(installed.length, 2, installed.join('\n'))
})

describe('B023: every subpath, imported and required', () => {
  for (const { path, specifier } of subpaths) {
    test(specifier, () => {
      const esm = `import * as all from '${specifier}'; console.log(JSON.stringify(Object.keys(all).sort()))`
      const cjs = `console.log(JSON.stringify(Object.keys(require('${specifier}')).sort()))`
      const imported = run(process.execPath, ['--input-type=module', '-e', esm], folder)
      const required = run(process.execPath, ['--input-type=commonjs', '-e', cjs], folder)
      assert.equal(imported.stderr, '')
      assert.equal(required.stderr, '')
      const names = JSON.parse(imported.stdout) as string[]
      assert.deepEqual(JSON.parse(required.stdout), names)
      assert.deepEqual(names, valueNames(path), 'the declarations and the code disagree')
    })
  }
})

const declarationsOf = (path: string) => {
  const { types } = subpaths.find((each) => each.path === path) ?? { types: '' }
  return exportedNames(join(folder, 'node_modules/holdfast', types))
}
const valueNames = (path: string) => declarationsOf(path).flatMap((each) => (each.isType ? [] : [each.name]))

test('the public interface is the one in test/api-snapshot.json', () => {
  const now = Object.fromEntries(
    subpaths.map(({ path, specifier }) => [
      specifier,
      declarationsOf(path).map(({ name, isType }) => (isType ? `type ${name}` : name)),
    ]),
  )
  if (process.env.UPDATE_SNAPSHOT && !process.env.CI) {
    writeFileSync(snapshotFile, `${JSON.stringify(now, null, 2)}\n`)
  }
  const reviewed = JSON.parse(readFileSync(snapshotFile, 'utf8')) as unknown
  assert.deepEqual(now, reviewed, 'if this change is meant: UPDATE_SNAPSHOT=1 npm test -- package')
})

test('the command runs and knows its version', () => {
  const { stdout, stderr } = run(join(folder, 'node_modules/.bin/holdfast'), ['--version'], folder)
  assert.equal(stderr, '')
  assert.ok(stdout.includes(manifest.version), stdout)
})

test('publint finds nothing', () => {
  ourTool('publint', [tarball, '--strict'])
})

test('B023: attw resolves the types of every subpath', () => {
  ourTool('attw', [tarball, '--profile', 'esm-only'])
})

describe('B023: a strict consumer', () => {
  const strict = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    target: 'ES2022',
    lib: ['ES2022', 'ESNext.Disposable'],
    types: ['node'],
    outDir: 'out',
  }
  const consumer = `
import { createLeases, type Lease } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { sqliteStore } from 'holdfast/sqlite'
export const onDisk = () => createLeases(sqliteStore({ path: 'leases.db' }), { ttlMs: 5_000 })
const leases = createLeases(memoryStore())
const twice = await leases.run('job', { waitMs: 1_000 }, async (lease: Lease) => lease.fence * 2n)
async function scoped(): Promise<Lease> {
  await using lease = await leases.acquire('job', { waitMs: 1_000 })
  return lease
}
const lease = await scoped()
const again: Lease | null = await leases.tryAcquire('job')
console.log(twice > 0n, lease.held, again?.held, (await again?.release()))
await leases.close()
`
  // TypeScript 7 has no `node10` resolution any more, and a package with `exports` was never visible to it.
  const settings = [
    { name: 'nodenext', file: 'consumer.mts', options: { module: 'nodenext' } },
    { name: 'node16', file: 'consumer.mts', options: { module: 'node16' } },
    { name: 'bundler', file: 'consumer.mts', options: { module: 'esnext', moduleResolution: 'bundler' } },
  ]

  before(() => {
    const types = join(folder, 'node_modules')
    mkdirSync(join(types, '@types'), { recursive: true })
    for (const each of ['@types/node', 'undici-types']) {
      cpSync(join(root, 'node_modules', each), join(types, each), { recursive: true })
    }
  })

  const compile = (files: Record<string, string>, options: object) => {
    const project = mkdtempSync(join(folder, 'consumer-'))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...strict, ...options } }))
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    return { project, result: spawnSync(process.execPath, [tsc, '-p', project], { cwd: project, encoding: 'utf8' }) }
  }

  for (const { name, file, options } of settings) {
    test(`compiles with ${name}, every declaration file checked, and runs`, () => {
      const every = subpaths.map(({ specifier }, i) => `export * as part${i} from '${specifier}'\n`).join('')
      const { project, result } = compile({ [file]: consumer, 'every.mts': every }, options)
      assert.equal(result.stdout, '')
      const ran = run(process.execPath, [join(project, 'out', 'consumer.mjs')], folder)
      assert.deepEqual([ran.stdout, ran.stderr], ['true false true released\n', ''])
    })
  }

  test('compiles as CommonJS that requires it, and runs', () => {
    const required = `
import holdfast = require('holdfast')
import memory = require('holdfast/memory')
const leases: holdfast.Leases = holdfast.createLeases(memory.memoryStore())
leases.run('job', async (lease) => lease.fence).then((fence) => console.log(typeof fence))
`
    const { project, result } = compile({ 'consumer.cts': required }, { module: 'nodenext' })
    assert.equal(result.stdout, '')
    const ran = run(process.execPath, [join(project, 'out', 'consumer.cjs')], folder)
    assert.deepEqual([ran.stdout, ran.stderr], ['bigint\n', ''])
  })

  test('control: a wrong use does not compile', () => {
    const { result } = compile({ 'consumer.mts': consumer.replace("'job', {", '42, {') }, { module: 'nodenext' })
    assert.match(result.stdout, /error TS\d+: .*number/)
  })
})

const hasOwnSqlite = 'getBuiltinModule' in process && process.getBuiltinModule('node:sqlite') !== undefined
test('without a SQLite driver, the message says what to install', {
  skip: hasOwnSqlite && 'this Node has node:sqlite built in',
}, () => {
  const lent = spawnSync(process.execPath, ['-p', "require.resolve('better-sqlite3')"], {
    cwd: folder,
    encoding: 'utf8',
  })
  assert.notEqual(lent.status, 0, `a node_modules above the temporary folder lends a driver: ${lent.stdout}`)
  const use = `
      import { createLeases } from 'holdfast'
      import { sqliteStore } from 'holdfast/sqlite'
      try {
        await createLeases(sqliteStore({ path: 'leases.db' })).tryAcquire('job')
        console.log('acquired')
      } catch (error) {
        console.log(error.message)
      }`
  const { stdout, stderr } = run(process.execPath, ['--input-type=module', '-e', use], folder)
  assert.match(stdout, /^[^\n]*npm install better-sqlite3[^\n]*\n$/)
  assert.equal(stderr, '')
})

test('without prom-client, everything of metrics can be imported, and the message says what to install', () => {
  const lent = spawnSync(process.execPath, ['-p', "require.resolve('prom-client')"], { cwd: folder, encoding: 'utf8' })
  assert.notEqual(lent.status, 0, `a node_modules above the temporary folder lends it: ${lent.stdout}`)
  const use = `
      import { createLeases } from 'holdfast'
      import { memoryStore } from 'holdfast/memory'
      import { prometheus } from 'holdfast/metrics'
      try {
        prometheus(createLeases(memoryStore()))
        console.log('attached')
      } catch (error) {
        console.log(error.code, error.message)
      }`
  const { stdout, stderr } = run(process.execPath, ['--input-type=module', '-e', use], folder)
  assert.equal(stdout, 'ERR_LEASE_UNSUPPORTED prometheus() needs prom-client: npm install prom-client\n')
  assert.equal(stderr, '')
})
