/**
 * The documentation is run. In README.md and every page of docs/, each block of code is, by its language:
 *
 * - `sh`: run by `sh -eu` in an empty folder with a home of its own, with `holdfast` and `npx holdfast` being the built
 *   command. It has to succeed; after `<!-- exits: N -->` its last line has to end with N.
 * - `ts`: type-checked, then run in an empty folder. It has to succeed. `js`: run alike, not type-checked.
 * - anything else is not code of ours (`text`, `json`, `sql` …), and is left alone. Every block names its language, and
 *   other names for a shell (`bash`, `console` …) are refused, so that nothing gets by unseen.
 *
 * Marks are comments before a block: `<!-- not run: why -->` (a `ts` block is then only type-checked) ·
 * `<!-- not checked: why -->` (neither) · `<!-- given: code -->` puts code before it that a reader does not need to see.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, relative } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { anchors, type CodeBlock, codeBlocks, links } from './support/markdown.js'
import { establishedRedis, withRedis } from './support/servers/redis.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Command lines that need no mark: these cannot be run here, for the reason given. */
const ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/^npm (?:install|i|ci)\b[^&|;]*$/, 'installs packages'],
  [/^(?:npm install && )?npm (?:run \S+|test)(?: |$)/, 'is, or contains, the run that this test belongs to'],
  [/^(?:sudo )?apt(?:-get)? install\b[^&|;]*$/, 'installs packages'],
]
const SHELLS = ['bash', 'shell', 'console', 'shell-session', 'zsh', 'terminal']

const pages = new Map(
  readdirSync(root, { encoding: 'utf8' })
    .concat(readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) => `docs/${path}`))
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => [path, readFileSync(join(root, path), 'utf8')] as const),
)
/** The server of the pages, which is not at its usual port here. */
const PAGES_REDIS = 'localhost:6379'
const redis = withRedis.skip ? null : await establishedRedis()
after(() => redis?.end())
const blocks = [...pages]
  .flatMap(([page, text]) => codeBlocks(page, redis ? text.replaceAll(PAGES_REDIS, `127.0.0.1:${redis.port}`) : text))
  .filter(({ code }) => redis !== null || !code.includes(PAGES_REDIS))

let folder = ''
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
  mkdirSync(join(folder, 'bin'))
  const command = join(root, 'dist/bundle/cli/main.js')
  const script = (text: string) => `#!/bin/sh\n${text}\n`
  writeFileSync(join(folder, 'bin/holdfast'), script(`exec "${process.execPath}" "${command}" "$@"`), { mode: 0o755 })
  const npx = `[ "$1" = holdfast ] || { echo "npx $1: only holdfast is here" >&2; exit 1; }\nshift\nexec holdfast "$@"`
  writeFileSync(join(folder, 'bin/npx'), script(npx), { mode: 0o755 })
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
  symlinkSync(root, join(folder, 'node_modules/holdfast'))
  for (const name of ['@types/node', 'undici-types', 'better-sqlite3', 'prom-client', 'ioredis', 'redis']) {
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Runs in an empty folder of its own; null when it went as promised, else what happened. */
function problemRunning(block: CodeBlock, command: string, args: string[]): string | null {
  const cwd = mkdtempSync(join(folder, 'run-'))
  const env: NodeJS.ProcessEnv = {
    PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}`,
    HOME: cwd,
    TMPDIR: cwd,
  }
  const { status, signal, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout: 60_000 })
  const expected = Number(block.marks.get('exits') ?? 0)
  if (status === expected) return null
  return `${block.page}:${block.line}: ended with ${status ?? signal}, not ${expected}\n${stdout}${stderr}`
}

function problemInShell(block: CodeBlock): string | null {
  const lines = block.code.split('\n').map((line) => line.replace(/\s+#.*$/, '').trim())
  const commands = lines.filter((line) => line && !line.startsWith('#'))
  if (commands.every((line) => ELSEWHERE.some(([pattern]) => pattern.test(line)))) return null
  // Only the last line may end with the promised number: an earlier one that fails ends the script with another.
  const last = block.code.trimEnd().lastIndexOf('\n') + 1
  const earlier = `${block.marks.get('given') ?? ''}\n${block.code.slice(0, last)}`
  const script = `trap '[ $? = 0 ] || exit 199' EXIT\n${earlier}\ntrap - EXIT\n${block.code.slice(last)}`
  return problemRunning(block, 'sh', ['-eu', '-c', script])
}

/** Compiles each block as a module of its own; the name of the source file leads to what is wrong with it. */
function compile(programs: readonly CodeBlock[]): { outputOf(block: CodeBlock): string; errors: string[] } {
  const project = mkdtempSync(join(folder, 'project-'))
  const nameOf = (block: CodeBlock) => `${block.page.replace(/\W/g, '_')}_${block.line}`
  for (const block of programs) {
    const source = `${block.marks.get('given') ?? ''}\n${block.code}\nexport {}\n`
    writeFileSync(join(project, `${nameOf(block)}.m${block.language}`), source)
  }
  // A reader who writes TypeScript has the driver's types installed; here it is enough that it exists.
  writeFileSync(join(project, 'drivers.d.ts'), "declare module 'better-sqlite3'\n")
  const options = {
    target: 'ES2022',
    module: 'nodenext',
    lib: ['ES2023', 'ESNext.Disposable'],
    types: ['node'],
    allowJs: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    outDir: 'out',
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', project], { cwd: project, encoding: 'utf8' })
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'))
  return { outputOf: (block) => join(project, 'out', `${nameOf(block)}.mjs`), errors }
}

const isProgram = (block: CodeBlock) => ['ts', 'js'].includes(block.language) && !block.marks.has('not checked')

describe('every block of code in the documentation', () => {
  test('names its language, and says why when it is not run', () => {
    const unnamed = blocks.filter((block) => block.language === '' || SHELLS.includes(block.language))
    const unreasoned = blocks.filter((block) => [...block.marks.values()].includes(''))
    const unknown = blocks.filter((block) =>
      [...block.marks.keys()].some((mark) => !['not run', 'not checked', 'given', 'exits'].includes(mark)),
    )
    const at = (wrong: CodeBlock[]) => wrong.map(({ page, line, language }) => `${page}:${line} ${language}`)
    assert.deepEqual(at(unnamed), [], 'write sh for a shell, text for what is not code')
    assert.deepEqual(at(unreasoned), [], 'a mark needs a reason')
    assert.deepEqual(at(unknown), [], 'no such mark')
  })

  for (const block of blocks.filter((each) => each.language === 'sh' && !each.marks.has('not run'))) {
    test(`${block.page}:${block.line} runs in a shell`, () => assert.equal(problemInShell(block), null))
  }

  describe('in TypeScript and JavaScript', () => {
    let compiled: ReturnType<typeof compile>
    before(() => {
      compiled = compile(blocks.filter(isProgram))
    })
    test('type-checks', () => assert.deepEqual(compiled.errors, []))
    for (const block of blocks.filter((each) => isProgram(each) && !each.marks.has('not run'))) {
      test(`${block.page}:${block.line} runs`, () => {
        assert.equal(problemRunning(block, process.execPath, [compiled.outputOf(block)]), null)
      })
    }
  })
})

/** Links to files that do not exist, and to headings that do not. Addresses on the network are not followed. */
function brokenLinks(all: ReadonlyMap<string, string>): string[] {
  return [...all].flatMap(([page, text]) =>
    links(text).flatMap((link) => {
      if (/^[a-z]+:/.test(link)) return []
      const [path = '', anchor] = link.split('#')
      const target = path ? relative(root, join(root, dirname(page), decodeURI(path))) : page
      if (!all.has(target) && !existsSync(join(root, target))) return [`${page}: ${link}: no such file`]
      const heading = anchor === undefined || anchors(all.get(target) ?? '').has(anchor)
      return heading ? [] : [`${page}: ${link}: no such heading`]
    }),
  )
}

test('links between pages lead somewhere', () => {
  assert.deepEqual(brokenLinks(pages), [])
})

describe('controls: this test can fail', () => {
  const only = (text: string) => {
    const [block] = codeBlocks('planted.md', text)
    assert.ok(block)
    return block
  }
  test('a command that fails', () => {
    assert.match(
      problemInShell(only('```sh\nholdfast --no-such-option\n```\n')) ?? '',
      /planted.md:1: ended with 64, not 0/,
    )
    assert.match(problemInShell(only('```sh\nfalse\ntrue\n```\n')) ?? '', /ended with 199/)
  })
  test('a command that is promised to fail and does not', () => {
    assert.equal(problemInShell(only('<!-- exits: 3 -->\n```sh\nexit 3\n```\n')), null)
    assert.match(problemInShell(only('<!-- exits: 3 -->\n```sh\ntrue\n```\n')) ?? '', /ended with 0, not 3/)
    assert.match(problemInShell(only('<!-- exits: 1 -->\n```sh\nfalse\nfalse\n```\n')) ?? '', /ended with 199, not 1/)
  })
  test('a program of wrong types, and one that throws', () => {
    const wrong = only("```ts\nimport { createLeases } from 'holdfast'\ncreateLeases(1)\n```\n")
    assert.equal(compile([wrong]).errors.length, 1)
    const throwing = only("<!-- given: const why = 'meant' -->\n\n```ts\nthrow new Error(why)\n```\n")
    const compiled = compile([throwing])
    assert.deepEqual(compiled.errors, [])
    assert.match(problemRunning(throwing, process.execPath, [compiled.outputOf(throwing)]) ?? '', /Error: meant/)
  })
  test('a link to a page or a heading that is not there', () => {
    const planted = new Map([['docs/a.md', '# A b, `c`\n[x](b.md) [y](#a-b-c) [z](#d) [r](../README.md)\n']])
    assert.deepEqual(brokenLinks(planted), ['docs/a.md: b.md: no such file', 'docs/a.md: #d: no such heading'])
  })
})
