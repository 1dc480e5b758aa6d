import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readSource } from './support/source-text.js'
import {
  type Files,
  importDirections,
  noConsole,
  noLeftovers,
  noMachinePaths,
  type Rule,
  shortFiles,
  storesComplete,
  timeOnlyInEnvironment,
} from './support/tidy-rules.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Every text file that belongs to the project. */
function readFiles(): Files {
  const files = new Map<string, string>()
  const visit = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder ? `${folder}/${entry.name}` : entry.name
      if (entry.isDirectory() && !['node_modules', 'dist', '.git'].includes(entry.name)) visit(path)
      if (entry.isFile() && !/\.(?:tgz|log|db|png)$/.test(path)) files.set(path, readFileSync(join(root, path), 'utf8'))
    }
  }
  visit('')
  return files
}

const files = readFiles()

/** Checks the rule on what is there, then that it finds each planted violation, and leaves innocent text alone. */
function rule(
  name: string,
  check: Rule,
  plants: { guilty: [path: string, text: string][]; innocent?: [string, string][] },
) {
  describe(name, () => {
    test('holds', () => {
      assert.deepEqual(check(files), [])
    })
    for (const [path, text] of plants.guilty) {
      test(`control: finds ${JSON.stringify(text.slice(0, 60))} in ${path}`, () => {
        assert.notDeepEqual(check(new Map([[path, text]])), [])
      })
    }
    for (const [path, text] of plants.innocent ?? []) {
      test(`control: allows ${JSON.stringify(text.slice(0, 60))} in ${path}`, () => {
        assert.deepEqual(check(new Map([[path, text]])), [])
      })
    }
  })
}

test('control: the rules read every source file to its end, and lose no code on the way', () => {
  for (const [path, text] of files) {
    if (!path.endsWith('.ts')) continue
    const { code, withStrings } = readSource(text)
    assert.equal(withStrings.length, text.length, path)
    for (const [open, close] of ['{}', '()', '[]'].map((pair) => pair.split(''))) {
      const count = (bracket = '') => code.split(bracket).length
      assert.equal(count(open), count(close), `${path}: ${open} and ${close} in what was taken for code`)
    }
  }
})

rule('imports go one way', importDirections, {
  guilty: [
    ['src/planted.ts', "import { memoryStore } from './stores/memory.js'"],
    ['src/planted.ts', "import type { MemoryStore } from './stores/memory.js'"],
    ['src/planted.ts', "export * from './stores/memory.js'"],
    ['src/planted.ts', "export {\n  memoryStore,\n} from './stores/memory.js'"],
    ['src/planted.ts', "import './stores/memory.js'"],
    ['src/planted.ts', "const load = () => import('./stores/memory.js')"],
    ['src/planted.ts', "const text = `${await import('./stores/memory.js')}`"],
    ['src/planted.ts', 'const load = (name: string) => import(name)'],
    ['src/planted.ts', "import { run } from './cli/main.js'"],
    ['src/errors.ts', "import { createLeases } from './leases.js'"],
    ['src/stores/planted.ts', "import { createLeases } from '../leases.js'"],
    ['src/stores/planted/deep/er.ts', "import { createLeases } from '../../../leases.js'"],
    ['src/faults/planted.ts', "import { memoryStore } from '../stores/memory.js'"],
    ['src/simulation/planted.ts', "import { main } from '../cli/main.js'"],
    ['src/fencing/planted.ts', "import { systemEnvironment } from '../environment.js'"],
    ['src/planted/x.ts', 'export const x = 1'],
    ['src/planted.ts', "import Database from 'better-sqlite3'"],
    ['src/stores/planted.ts', "import type Database from 'better-sqlite3'"],
    ['src/stores/planted.ts', "import { DatabaseSync } from 'node:sqlite'"],
  ],
  innocent: [
    ['src/planted.ts', "import { sleep } from './environment.js'\nimport { join } from 'node:path'"],
    ['src/planted.ts', "// import { memoryStore } from './stores/memory.js'"],
    ['src/planted.ts', 'const help = "import { memoryStore } from \'./stores/memory.js\'"'],
    ['src/planted.ts', "const help = `say ${1 + 1} import { memoryStore } from './stores/memory.js'`"],
    ['src/planted.ts', "const odd = /['\"]/\n/* import './stores/memory.js' */"],
    ['src/stores/planted.ts', "const load = () => import('better-sqlite3')"],
    [
      'src/fencing/planted.ts',
      "import type { Lease } from '../lease.js'\nimport { StaleFenceError } from '../errors.js'",
    ],
    ['src/cli/planted.ts', "import { memoryStore } from '../stores/memory.js'"],
  ],
})

rule('only src/environment.ts touches time, timers and randomness', timeOnlyInEnvironment, {
  guilty: [
    ['src/planted.ts', 'const now = Date.now()'],
    ['src/planted.ts', 'const now = +new Date()'],
    ['src/planted.ts', 'const now = +new Date( )'],
    ['src/planted.ts', 'const now = new Date'],
    ['src/planted.ts', 'const text = new Date(Date.now())'],
    ['src/planted.ts', 'const now = Date()'],
    ['src/planted.ts', 'const now = performance.now()'],
    ['src/cli/planted.ts', 'setTimeout(() => {}, 10)'],
    ['src/planted.ts', 'const text = `${setInterval(f, 1)}`'],
    ['src/planted.ts', 'setImmediate(() => {})'],
    ['src/planted.ts', 'globalThis.setTimeout(f)'],
    ['src/planted.ts', 'const now = process.hrtime.bigint()'],
    ['src/planted.ts', "import { uptime } from 'node:os'\nconst now = uptime()"],
    ['src/planted.ts', 'const signal = AbortSignal.timeout(5)'],
    ['src/planted.ts', 'Atomics.wait(cells, 0, 0, 5)'],
    ['src/planted.ts', 'const jitter = Math.random()'],
    ['src/planted.ts', "import { randomBytes } from 'node:crypto'"],
    ['src/planted.ts', 'const id = crypto.randomUUID()'],
    ['src/planted.ts', "import * as later from 'node:timers/promises'"],
    ['src/planted.ts', "import * as later from 'timers'"],
    ['src/planted.ts', "const clock = await import('node:perf_hooks')"],
    ['src/stores/planted.ts', "const sql = `select unixepoch('now')`"],
  ],
  innocent: [
    ['src/planted.ts', '// Date.now() would be wrong here\nqueueMicrotask(f)'],
    ['src/planted.ts', "const hint = 'setTimeout(f, 1)'"],
    ['src/planted.ts', 'const seen = environment.clock.now()'],
    ['src/planted.ts', 'const text = new Date(seen).toISOString()'],
  ],
})

rule('a file in src/ has at most 250 lines', shortFiles, {
  guilty: [['src/planted.ts', 'export {}\n'.repeat(251)]],
  innocent: [['src/planted.ts', 'export {}\n'.repeat(250)]],
})

rule('no note is left for later', noLeftovers, {
  guilty: [
    ['src/planted.ts', `// ${'TO'}${'DO'}: the rest`],
    ['docs/planted.md', `${'FIX'}${'ME'} later`],
  ],
})

rule('the library prints nothing', noConsole, {
  guilty: [['src/planted.ts', "console.log('here')"]],
  innocent: [
    ['src/cli/planted.ts', "console.log('data')"],
    ['src/planted.ts', '/** `console.log(lease)` hides the owner. */'],
  ],
})

rule('nothing names the machine that it was made on', noMachinePaths, {
  guilty: [
    ['docs/planted.md', `see /${'work'}/main`],
    ['.ci/planted', `cd /${'root'}/x`],
    ['package-lock.json', `"${'resolved'}": "https://example.org/x.tgz"`],
  ],
  innocent: [['docs/planted.md', `see docs/${'work'}/main and ./${'root'}/x`]],
})

rule('every store has its test, page, export and README row', storesComplete, {
  guilty: [
    ['src/stores/planted.ts', 'export const plantedStore = 1'],
    ['src/stores/planted/index.ts', 'export const plantedStore = 1'],
  ],
})

test('control: each missing part of a store is named', () => {
  const complete: [string, string][] = [
    ['src/stores/planted.ts', ''],
    ['test/stores/planted.test.ts', ''],
    ['docs/stores/planted.md', '# planted'],
    ['package.json', JSON.stringify({ exports: { './planted': './dist/src/stores/planted.js' } })],
    ['README.md', '| `plantedStore()` | `holdfast/planted` |'],
  ]
  assert.deepEqual(storesComplete(new Map(complete)), [])
  for (const [path] of complete.slice(1)) {
    const problems = storesComplete(new Map(complete.filter(([each]) => each !== path)))
    assert.equal(problems.length, 1, `without ${path}: ${problems.join(', ')}`)
  }
  const shared = complete.map(([path, text]): [string, string] =>
    path === 'docs/stores/planted.md' ? ['docs/stores/other.md', '# Other and planted'] : [path, text],
  )
  assert.deepEqual(storesComplete(new Map(shared)), [])
})
