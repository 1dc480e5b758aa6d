/** The completion scripts in the shells that they are for, with a key pressed where that is how one asks. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.js'
import { needsCommands, Screen } from '../support/tmux.js'
import { bench, MAIN, type Running } from './support.js'

const cli = bench()
const script = (shell: string): string => join(cli.folder, `completion.${shell}`)
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const OTHER = 'sqlite:other.db'
const holders: Running[] = []

before(async () => {
  mkdirSync(join(cli.folder, 'bin'))
  const program = join(cli.folder, 'bin/holdfast')
  writeFileSync(program, `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(MAIN)} "$@"\n`)
  chmodSync(program, 0o755)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout, stderr } = await cli.run(['completion', shell])
    assert.deepEqual([code, stderr], [0, ''])
    writeFileSync(script(shell), stdout)
  }
  writeFileSync(join(cli.folder, 'plain.store'), '')
  const hold = ['--', 'sh', '-c', 'echo up; cat']
  for (const args of [['job:invoices:2031'], ['odd key $x'], ['--store', OTHER, 'elsewhere']])
    holders.push(cli.start(['run', ...args, ...hold], { stdin: 'open' }))
  await Promise.all(holders.map((holder) => holder.saw(/up/)))
})
after(async () => {
  for (const holder of holders) holder.process.stdin?.end()
  await Promise.all(holders.map((holder) => holder.ended))
})

/** What is typed, and what stands there after Tab. */
const CASES: readonly (readonly [typed: string, completed: string])[] = [
  ['holdfast ru', 'holdfast run '],
  ['holdfast run --lo', 'holdfast run --lock-delay '],
  ['holdfast completion f', 'holdfast completion fish '],
  ['holdfast help rev', 'holdfast help revoke '],
  ['holdfast show jo', 'holdfast show job:invoices:2031 '],
  ['holdfast show job:in', 'holdfast show job:invoices:2031 '],
  ['holdfast revoke -- jo', 'holdfast revoke -- job:invoices:2031 '],
  ['holdfast run --ttl 5s jo', 'holdfast run --ttl 5s job:invoices:2031 '],
  ['holdfast show od', 'holdfast show odd\\ key\\ \\$x '],
  [`holdfast show --store ${OTHER} el`, `holdfast show --store ${OTHER} elsewhere `],
  [`holdfast ls --store=${OTHER} el`, `holdfast ls --store=${OTHER} elsewhere `],
  ['holdfast show --store sqlite:pla', 'holdfast show --store sqlite:plain.store '],
  ['holdfast run k ', 'holdfast run k -- '],
  ['holdfast run k -- basena', 'holdfast run k -- basename '],
  ['holdfast run -- -k -- basena', 'holdfast run -- -k -- basename '],
  ['holdfast run k -- cat /etc/hostnam', 'holdfast run k -- cat /etc/hostname '],
  ['true; holdfast show jo', 'true; holdfast show job:invoices:2031 '],
]

describe('Tab in a terminal', () => {
  for (const [shell, start, set] of [
    ['bash', 'bash --norc -i', 'bind "set bell-style none"'],
    ['zsh', 'zsh -f -i', 'autoload -U compinit; compinit -D; unsetopt beep'],
  ] as const) {
    describe(shell, needsCommands('tmux', shell), () => {
      let terminal: Screen
      before(async () => {
        terminal = new Screen(cli, shell, start)
        terminal.type(`${set}; . ${quoted(script(shell))}; PATH=$PWD/bin:$PATH; PS1='> '; clear; echo ready`)
        terminal.press('Enter')
        await terminal.sees(/^ready\n> /m)
      })
      after(() => terminal.end())
      for (const [typed, completed] of CASES) {
        test(typed, async () => {
          terminal.press('C-u')
          terminal.type(typed)
          terminal.press('Tab')
          // A mark shows the space after a whole word.
          await terminal.sees(new RegExp(`^> ${literal(completed.trimEnd())}`, 'm'))
          terminal.type('X')
          await terminal.sees(new RegExp(`^> ${literal(completed)}X`, 'm'))
        })
      }
    })
  }
})

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

describe('fish', needsCommands('fish'), () => {
  const offered = async (line: string): Promise<string[]> => {
    const ask = `source ${quoted(script('fish'))}; set -p PATH $PWD/bin; complete -C ${quoted(line)}`
    const { stdout, stderr } = await cli.spawn('fish', ['--no-config', '-c', ask]).ended
    assert.equal(stderr, '')
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((each) => each.split('\t')[0] ?? '')
  }
  for (const [typed, completed] of CASES) {
    const word =
      completed
        .trimEnd()
        .split(/(?<!\\) /)
        .at(-1) ?? ''
    test(typed, async () => {
      const found = await offered(typed)
      assert.deepEqual(found, [word.replaceAll('\\', '')])
    })
  }
  test('every command, with what it does', async () => {
    assert.deepEqual(await offered('holdfast '), COMMANDS.map(({ name }) => name).sort())
  })
})

describe('every script', () => {
  test('offers the beginnings of URLs', async () => {
    for (const shell of ['bash', 'zsh', 'fish'])
      assert.match((await cli.run(['completion', shell])).stdout, / sqlite: redis:\/\/ rediss:\/\//, shell)
  })
  test('names every command and option of the table', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { stdout } = await cli.run(['completion', shell])
      for (const { name, options } of COMMANDS) {
        assert.ok(stdout.includes(name), `${shell}: ${name}`)
        for (const option of options) assert.ok(stdout.includes(option.name), `${shell}: ${name} --${option.name}`)
      }
    }
  })
  test('another shell is refused, with those that there are', async () => {
    const { code, stderr } = await cli.run(['completion', 'tcsh'])
    assert.equal(code, 64)
    assert.match(stderr, /there is no completion for tcsh; there is one for bash, zsh, fish/)
  })
})
