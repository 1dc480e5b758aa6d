/** The manual page and docs/cli.md say what the table of commands says. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { COMMANDS } from '../../src/cli/commands.js'
import { EXIT } from '../../src/cli/exit.js'
import { manualPage } from '../../src/cli/man.js'
import { EXIT_CODES } from '../../src/cli/specs/exit-codes.js'
import { FILES, GIVES, READS } from '../../src/cli/specs/variables.js'
import { needsCommands } from '../support/tmux.js'

const file = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const PAGE = file('dist/bundle/cli/holdfast.1')
const source = readFileSync(PAGE, 'utf8')
const flat = (text: string): string => text.replaceAll('`', '').replaceAll('…', '...').replace(/\s+/g, ' ').trim()

const groff = (text: string) => spawnSync('groff', ['-man', '-Tutf8', '-ww', '-P-c'], { input: text, encoding: 'utf8' })
/** As one reads it: without overstriking, and without the lines' own shape. */
const read = (text: string): string => {
  const { stdout } = spawnSync('groff', ['-man', '-Tascii', '-P-cbou', '-rLL=2000n'], { input: text, encoding: 'utf8' })
  return flat(stdout)
}

describe('the manual page', () => {
  test('is the one that this table makes', () => {
    const { version } = JSON.parse(readFileSync(file('package.json'), 'utf8')) as { version: string }
    assert.equal(source, manualPage(version))
  })

  test('groff warns of nothing', needsCommands('groff'), () => {
    assert.equal(groff(source).stderr, '')
    assert.notEqual(groff(`${source}.no-such-request\n\\fB\\(zz\n`).stderr, '', 'control: it would')
  })

  test('mandoc complains of nothing but the date that is not there', needsCommands('mandoc'), () => {
    const lint = (text: string) => {
      const { stdout } = spawnSync('mandoc', ['-Tlint'], { input: text, encoding: 'utf8' })
      return stdout.split('\n').filter((line) => line !== '' && !line.includes('missing date'))
    }
    assert.deepEqual(lint(source), [])
    assert.notDeepEqual(lint(`${source}.XX\n`), [], 'control')
  })

  test('says all that --help, the exit codes, the environment and the files say', needsCommands('groff'), () => {
    const text = read(source)
    const said = [
      ...COMMANDS.flatMap((spec) => [spec.usage, spec.summary, ...spec.notes, ...spec.examples.flat()]),
      ...COMMANDS.flatMap(({ options }) => options.map(({ help }) => help)),
      ...COMMANDS.flatMap(({ options }) =>
        options.map(({ name, short, value }) => `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`),
      ),
      ...EXIT_CODES.flatMap(({ code, meaning }) => [code, meaning]),
      ...[...READS, ...GIVES, ...FILES].flatMap(({ name, meaning }) => [name, meaning]),
    ]
    assert.deepEqual(
      said.filter((each) => !text.includes(flat(each))),
      [],
    )
    for (const title of ['NAME', 'SYNOPSIS', 'EXIT STATUS', 'ENVIRONMENT', 'FILES', 'EXAMPLES'])
      assert.ok(source.includes(`.SH ${title}\n`), title)
  })

  test('no dash in it is a hyphen, no line a request by accident', () => {
    const text = source.split('\n').filter((line) => !/^\.(?:TH|SH|SS|TP|PP|br|nh)\b/.test(line))
    assert.deepEqual(
      text.filter((line) => /^[.']/.test(line) || /(?<!\\)-/.test(line)),
      [],
    )
  })
})

describe('docs/cli.md', () => {
  const page = readFileSync(file('docs/cli.md'), 'utf8')
  /** Rows of the table under a heading, without the heads. */
  const rows = (heading: string): string[] => {
    const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
    return section
      .split('\n')
      .filter((line) => line.startsWith('| ') || /^\|[^-]/.test(line))
      .slice(1)
  }
  test('has the exit codes of the table', () => {
    const expected = EXIT_CODES.map(
      ({ code, of, meaning }) =>
        `| ${code} | ${of ? of.map((each) => `\`${each}\``).join(', ') : 'all'} | ${meaning} |`,
    )
    assert.deepEqual(rows('Exit codes'), expected)
  })
  test('has the environment of the table', () => {
    const row = (who: string) => (each: { name: string; meaning: string }) =>
      `| \`${each.name}\` | ${who} | ${each.meaning} |`
    assert.deepEqual(rows('Environment'), [...READS.map(row('read')), ...GIVES.map(row('given to the command'))])
  })
  test('names every command and option', () => {
    for (const { name, options } of COMMANDS) {
      assert.ok(page.includes(`holdfast ${name}`), name)
      for (const option of options) assert.ok(page.includes(`--${option.name}`), `${name} --${option.name}`)
    }
  })
})

test('every exit code has its meaning', () => {
  const told = EXIT_CODES.flatMap(({ code }) => code.split(', '))
  assert.deepEqual(
    Object.values(EXIT).filter((code) => !told.includes(String(code))),
    [],
  )
})
