/**
 * The rules that a machine can check, each a function from the files of this repository to what is wrong with them.
 * `test/tidy.test.ts` runs each on the real files and on planted violations, which it must find.
 */
import { posix } from 'node:path'
import { type Import, importsOf, lineAt, readSource } from './source-text.js'

/** Paths relative to the repository, with `/`, and their text. */
export type Files = ReadonlyMap<string, string>
export type Rule = (files: Files) => string[]

const sourcesIn = (files: Files, folder: string) =>
  [...files].filter(([path]) => path.startsWith(folder) && path.endsWith('.ts'))

// ---------------------------------------------------------------------------------------------- import directions

// Parts of the environment in files of their own.
const BASE = [
  'store',
  'errors',
  'environment',
  'agenda',
  'system-clock',
  'suspend-meter',
  'process-stat',
  'random-bytes',
]

/** For each part of `src/`: what it may import while running, and what it may import types from besides. */
const DIRECTIONS: Record<string, { readonly values: readonly string[]; readonly types?: readonly string[] }> = {
  base: { values: ['base'] },
  core: { values: ['base', 'core'] },
  stores: { values: ['base', 'stores'] },
  faults: { values: ['base', 'faults'] },
  simulation: { values: ['base', 'core', 'stores', 'simulation'] },
  conformance: { values: ['base', 'core', 'stores', 'conformance'] },
  fencing: { values: ['errors', 'fencing'], types: ['base', 'core'] },
  metrics: { values: ['errors', 'events', 'metrics'], types: ['base', 'core'] },
  cli: { values: ['base', 'core', 'stores', 'faults', 'simulation', 'conformance', 'fencing', 'metrics', 'cli'] },
}

/** The names by which a file can stand in the table: its part, and for a file directly in `src/` its own name. */
function partsOf(path: string): readonly string[] {
  const [, folder, name] = /^src\/(?:([^/]+)\/)?(?:.*\/)?([^/]+)\.ts$/.exec(path) ?? []
  if (folder !== undefined) return [folder]
  return [BASE.includes(name ?? '') ? 'base' : 'core', name ?? '']
}

export const importDirections: Rule = (files) =>
  sourcesIn(files, 'src/').flatMap(([path, text]) => {
    const part = partsOf(path)[0] ?? ''
    const rule = DIRECTIONS[part]
    if (!rule) return [`${path}: no rule says what ${part} may import`]
    return importsOf(text).flatMap((each) => {
      const wrong = each.specifier?.startsWith('.') ? ourImport(path, each, rule) : foreignImport(part, each)
      return wrong ? [`${path}:${each.line}: ${wrong}`] : []
    })
  })

function ourImport(path: string, { specifier, kind }: Import, rule: (typeof DIRECTIONS)[string]): string | null {
  const target = posix.join(posix.dirname(path), specifier ?? '').replace(/\.js$/, '.ts')
  const allowed = kind === 'type' ? [...rule.values, ...(rule.types ?? [])] : rule.values
  if (partsOf(target).some((each) => allowed.includes(each))) return null
  return `imports ${target}${kind === 'type' ? ' (types)' : ''}; allowed: ${allowed.join(', ')}`
}

/** The package has no runtime dependency: drivers are loaded while running, by stores and by the command line only. */
function foreignImport(part: string, { specifier, kind }: Import): string | null {
  if (specifier?.startsWith('node:') && specifier !== 'node:sqlite') return null
  if (kind === 'dynamic' && ['stores', 'cli'].includes(part)) return null
  return `imports ${specifier ?? 'a module whose name is computed'}; allowed: node's own modules and our files`
}

// ---------------------------------------------------------------------------------------------- time and randomness

/** The environment and its parts. */
const TIME_FILES = ['src/environment.ts', 'src/system-clock.ts', 'src/random-bytes.ts']
const CLOCK_MODULES = ['timers', 'timers/promises', 'perf_hooks']
const CLOCK_WORDS = [
  /\bDate\.now\b/,
  // With an argument it is the date of a moment that somebody else has read.
  /\bnew Date\b(?!\(\s*[\w])/,
  /(?<!\bnew )\bDate\(/,
  /\bperformance\b/,
  /\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/,
  /\bhrtime\b/,
  /\b(?:os|process)\.uptime\b/,
  /\buptime\(/,
  /\bAbortSignal\.timeout\b/,
  /\bAtomics\.wait(?:Async)?\b/,
  /\bMath\.random\b/,
  /\b(?:randomBytes|randomText|randomUUID|randomInt|randomFill|randomFillSync|getRandomValues)\b/,
]
/** SQLite's ways to read the machine's wall clock. (A server's own clock is a different thing: it is the store's.) */
const SQLITE_CLOCK = /\b(?:unixepoch|julianday|strftime)\(|\bCURRENT_(?:TIMESTAMP|TIME|DATE)\b/i

export const timeOnlyInEnvironment: Rule = (files) =>
  sourcesIn(files, 'src/').flatMap(([path, text]) => {
    if (TIME_FILES.includes(path)) return []
    const { code, withStrings } = readSource(text)
    const found: { what: string; line: number }[] = []
    for (const word of CLOCK_WORDS) {
      for (const match of code.matchAll(new RegExp(word, 'g'))) {
        found.push({ what: match[0], line: lineAt(code, match.index) })
      }
    }
    for (const { specifier, line } of importsOf(text)) {
      if (CLOCK_MODULES.includes(specifier?.replace(/^node:/, '') ?? '')) found.push({ what: specifier ?? '', line })
    }
    const sql = SQLITE_CLOCK.exec(withStrings)
    if (sql) found.push({ what: sql[0], line: lineAt(withStrings, sql.index) })
    return found.map(
      ({ what, line }) => `${path}:${line}: ${what}; only src/environment.ts touches time and randomness`,
    )
  })

// ---------------------------------------------------------------------------------------------- size and leftovers

const LINES = 250

export const shortFiles: Rule = (files) =>
  sourcesIn(files, 'src/').flatMap(([path, text]) => {
    const lines = text.split('\n').length - 1
    return lines > LINES ? [`${path}: ${lines} lines; allowed: ${LINES}`] : []
  })

function linesMatching(files: Iterable<readonly [string, string]>, pattern: RegExp, what: string): string[] {
  return [...files].flatMap(([path, text]) =>
    text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${what}`] : [])),
  )
}

// The braces keep this line from matching itself.
const LEFTOVER = /\b(?:TO{1}DO|FIX{1}ME|XX{1}X)\b/
export const noLeftovers: Rule = (files) => linesMatching(files, LEFTOVER, 'a leftover note; do it or drop it')

export const noConsole: Rule = (files) => {
  const code = sourcesIn(files, 'src/')
    .filter(([path]) => !path.startsWith('src/cli/'))
    .map(([path, text]) => [path, readSource(text).code] as const)
  return linesMatching(code, /\bconsole\./, 'a library does not print')
}

const MACHINE_PATH =
  /(?:^|[^\w.-])\/(?:work|farm|root|Users)\/|\.library\/|"resolve{1}d":|\bregistry\.[a-z]+\.(?:org|com)\b/
export const noMachinePaths: Rule = (files) => linesMatching(files, MACHINE_PATH, 'belongs to one machine')

// ---------------------------------------------------------------------------------------------- stores are complete

/**
 * A store is a name in `src/stores/`: a file `<name>.ts`, or a folder `<name>/` (a file beside it of the same name is the
 * same store). Each has a test `test/stores/<name>.test.ts`; a page in `docs/stores/`, either `<name>.md` or one whose
 * first heading names it; an export `holdfast/<name>`; and a row in a table of the README that names it as
 * `holdfast/<name>` or by its factory, `<name>Store`.
 */
export const storesComplete: Rule = (files) => {
  const names = new Set<string>()
  for (const [path] of sourcesIn(files, 'src/stores/')) names.add(path.split('/')[2]?.replace(/\.ts$/, '') ?? '')
  const { exports } = JSON.parse(files.get('package.json') ?? '{}') as { exports?: Record<string, unknown> }
  const rows = (files.get('README.md') ?? '').split('\n').filter((line) => line.startsWith('|'))
  const pages = [...files].filter(([path]) => /^docs\/stores\/[^/]+\.md$/.test(path))

  return [...names].sort().flatMap((name) => {
    const word = new RegExp(`\\b${name}\\b`, 'i')
    const named = (text: string) => word.test(/^# .*/m.exec(text)?.[0] ?? '')
    const missing: string[] = []
    if (!files.has(`test/stores/${name}.test.ts`)) missing.push(`a test test/stores/${name}.test.ts`)
    if (!pages.some(([path, text]) => path === `docs/stores/${name}.md` || named(text))) missing.push('a docs page')
    if (!exports?.[`./${name}`]) missing.push(`an export ./${name} in package.json`)
    if (!rows.some((row) => new RegExp(`holdfast/${name}\\b|\\b${name}Store\\b`).test(row)))
      missing.push('a README row')
    return missing.map((what) => `src/stores/${name}: lacks ${what}`)
  })
}
