import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parse } from '../../src/cli/args.js'
import { COMMANDS, type CommandSpec } from '../../src/cli/commands.js'
import { CliError } from '../../src/cli/exit.js'
import { helpOf, overview } from '../../src/cli/help.js'
import { shellWord } from '../../src/cli/shell.js'
import { printable } from '../../src/cli/text/output.js'
import { bench } from './support.js'

const spec = (name: string): CommandSpec => {
  const found = COMMANDS.find((each) => each.name === name)
  assert.ok(found)
  return found
}
const refused = (command: string, argv: string[], message: RegExp) =>
  assert.throws(
    () => parse(spec(command), argv),
    (error) => {
      assert.ok(error instanceof CliError)
      assert.equal(error.exitCode, 64)
      assert.match(error.message, message)
      return true
    },
  )

test('B214: everything after -- belongs to the command, untouched', () => {
  const command = ['cmd', '-v', '--help', '--ttl', '5', '--', '-n', '']
  const parsed = parse(spec('run'), ['--ttl', '5s', 'key', '--', ...command])
  assert.deepEqual(parsed.command, command)
  assert.deepEqual(parsed.positionals, ['key'])
  assert.deepEqual([...parsed.options], [['ttl', ['5s']]])
})

test('a key that begins with a dash comes after --', () => {
  for (const name of ['show', 'revoke', 'ls']) {
    for (const key of ['-k', '--json', '--', '-', 'k']) {
      assert.deepEqual(parse(spec(name), ['--json', '--', key]).positionals, [key])
      assert.deepEqual([...parse(spec(name), ['--json', '--', key]).options.keys()], ['json'])
    }
  }
  for (const [argv, positionals, command] of [
    [['-n', '--', '-k', '--', 'cmd', '-x'], ['-k'], ['cmd', '-x']],
    [['--', '-k', 'cmd', '-x', '--', 'y'], ['-k'], ['cmd', '-x', '--', 'y']],
    [['--', '--ttl', '--', '--help'], ['--ttl'], ['--help']],
    [['--', '--', '--', 'cmd'], ['--'], ['cmd']],
    [['--', 'k', '--', 'cmd', '--'], ['k'], ['cmd', '--']],
    [['k', '--', '-k', '--', 'cmd'], ['k'], ['-k', '--', 'cmd']],
  ] as const) {
    const parsed = parse(spec('run'), argv)
    assert.deepEqual([parsed.positionals, parsed.command], [positionals, command], argv.join(' '))
  }
})

test('options may stand before and after the key, long, short, and with =', () => {
  const parsed = parse(spec('run'), ['-n', 'key', '--ttl=5s', '-E9', '--store', 'a:', '--store=b:', '--', 'x'])
  assert.deepEqual(Object.fromEntries(parsed.options), {
    'no-wait': [''],
    ttl: ['5s'],
    'conflict-exit-code': ['9'],
    store: ['a:', 'b:'],
  })
})

describe('bad usage is named', () => {
  const cases: [string, string[], RegExp][] = [
    ['run', ['k', 'sleep', '5'], /^the command comes after --: holdfast run k -- sleep 5$/],
    [
      'run',
      ['--ttl', '5s', 'k', '-n', 'sh', '-c', 'echo $X', '--verbose'],
      /: holdfast run --ttl 5s k -n -- sh -c 'echo \$X' --verbose$/,
    ],
    ['run', ['--store', 'redis://:secret@h', 'k', 'x'], /--store 'redis:\/\/\*\*\*@h' k -- x$/],
    ['run', ['k'], /needs -- and a command/],
    ['run', ['k', '--'], /needs -- and a command/],
    ['run', ['--', 'x'], /needs a key/],
    ['run', ['k', 'l', '--', 'x'], /does not take l/],
    ['run', ['--tll', '5s', 'k', '--', 'x'], /no option --tll; did you mean --ttl\?/],
    ['run', ['--nowait', 'k', '--', 'x'], /did you mean --no-wait\?/],
    ['run', ['--frobnicate', 'k', '--', 'x'], /no option --frobnicate; see holdfast run --help/],
    ['run', ['-x', 'k', '--', 'x'], /no option -x/],
    ['run', ['k', '--ttl', '--', 'x'], /--ttl needs a value/],
    ['run', ['--ttl', '--quiet', 'k', '--', 'x'], /--ttl needs a value/],
    ['run', ['--quiet=yes', 'k', '--', 'x'], /--quiet takes no value/],
    ['run', ['--ttl', '1s', '--ttl', '2s', 'k', '--', 'x'], /--ttl was given twice/],
    ['show', [], /needs a key/],
    ['show', ['a', 'b'], /does not take b/],
    ['ls', ['a', '--', 'x'], /does not take x \(it runs no command\)/],
    ['show', ['--', '-a', '-b'], /does not take -b/],
    ['show', ['-k'], /no option -k; .*a key that begins with a dash comes after --/],
    ['run', ['-E', 'k', '--', 'true'], /needs a key \(-E took k as its value\)/],
    ['run', ['-E', 'k', '--quiet', '--', 'true'], /needs a key \(-E took k as its value\)/],
    ['show', ['--store', 'redis://:secret@h'], /needs a key \(--store took 'redis:\/\/\*\*\*@h' as its value\)/],
    ['run', ['-E=k', '--', 'true'], /needs a key: /],
    ['run', ['--', 'make', 'deploy'], /needs a key/],
    ['run', ['--', 'npm', 'run', 'test', '--', '--watch'], /needs a key/],
    ['run', ['--', '-k'], /needs -- and a command/],
    ['run', ['--', '-k', '--'], /needs -- and a command/],
    ['ls', ['--ttl', '5s'], /ls knows no option --ttl/],
  ]
  for (const [command, argv, message] of cases)
    test(`${command} ${argv.join(' ')}`, () => refused(command, argv, message))
})

describe('help', () => {
  for (const each of COMMANDS) {
    test(`of ${each.name} shows every option that the parser knows, and examples that parse`, () => {
      const text = helpOf(each)
      for (const { name, short, value } of each.options) {
        assert.ok(text.includes(`--${name}${value ? ` ${value}` : ''}`), name)
        if (short) assert.ok(text.includes(`-${short}, --${name}`), name)
      }
      assert.ok(each.examples.length >= 2)
      for (const [line] of each.examples) {
        assert.ok(text.includes(line))
        const [program, command, ...rest] = line.match(/'[^']*'|\S+/g) ?? []
        assert.deepEqual([program, command], ['holdfast', each.name])
        parse(each, rest)
      }
      assert.ok(overview().includes(each.summary))
    })
  }
  test('no line is wider than a terminal of 100 columns, but for usage and examples', () => {
    const wide = COMMANDS.flatMap((each) => helpOf(each).split('\n')).filter((line) => line.length > 101)
    assert.deepEqual(wide, [])
  })
})

describe('the built command', () => {
  const cli = bench()
  for (const { name } of COMMANDS) {
    test(`${name} --help goes to stdout`, async () => {
      const { code, stdout, stderr } = await cli.run([name, '--help'])
      assert.equal(code, 0)
      assert.equal(stderr, '')
      assert.equal(stdout, helpOf(spec(name)))
    })
  }
  test('--version, --help, help <command>, and nothing at all', async () => {
    assert.match((await cli.run(['--version'])).stdout, /^\d+\.\d+\.\d+\S*\n$/)
    assert.equal((await cli.run(['--help'])).stdout, overview())
    assert.equal((await cli.run(['help', 'ls'])).stdout, helpOf(spec('ls')))
    const nothing = await cli.run([])
    assert.deepEqual([nothing.code, nothing.stdout, nothing.stderr], [64, '', overview()])
  })
  test('a mistyped command: exit 64 and the nearest one', async () => {
    const { code, stderr } = await cli.run(['rnu', 'k', '--', 'x'])
    assert.equal(code, 64)
    assert.equal(stderr, 'holdfast: there is no command rnu; did you mean run?\n')
  })
})

test('what disturbs a terminal is shown, not sent', () => {
  assert.equal(printable('a\x1b[2Jb\nc\u009b1m\u202ed\u2028e😀é'), 'a\\x1b[2Jb\\nc\\x9b1m\\u202ed\\u2028e😀é')
  assert.equal(shellWord("it's\x1b"), "$'it\\'s\\x1b'")
})
