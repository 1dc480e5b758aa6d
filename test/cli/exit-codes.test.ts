/** The contract of exit codes: each row of the table in docs/cli.md by what really leads to it, told by --json-log too. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { bench, MAIN, ONE_LINE, type Result, type Running } from './support.js'

const cli = bench()
const env = { NODE: process.execPath, MAIN }
const isRoot = process.getuid?.() === 0
let logs = 0

interface Told {
  readonly outcome: string
  readonly exitCode: number
  readonly commandExitCode: number | null
  readonly signal: string | null
  readonly reason: string | null
}

/** `run` with a log of its own, which the function that it gives reads the outcome from. */
function runArgs(args: readonly string[]): { args: string[]; told: () => Told } {
  const log = join(cli.folder, `log-${logs++}`)
  const told = () => {
    const last = readFileSync(log, 'utf8').trimEnd().split('\n').at(-1) ?? ''
    const { event, outcome, exitCode, commandExitCode, signal, reason } = JSON.parse(last)
    assert.equal(event, 'outcome')
    return { outcome, exitCode, commandExitCode, signal, reason }
  }
  return { args: ['run', '--json-log', log, ...args], told }
}

function expect(result: Result | number | null, told: Told, code: number, facts: Omit<Told, 'exitCode'>): void {
  const got = typeof result === 'object' && result ? result.code : result
  assert.equal(got, code, typeof result === 'object' ? result?.stderr : '')
  assert.deepEqual(told, { ...facts, exitCode: code })
}

const NONE = { commandExitCode: null, signal: null, reason: null }

describe("B212: the command's own", () => {
  // Codes of ours among them: a command may use any, and the log tells them apart.
  for (const code of [0, 1, 2, 42, 64, 69, 70, 74, 75, 76, 78, 126, 127, 130, 143, 255]) {
    test(`${code}`, async () => {
      const { args, told } = runArgs(['code', '--', 'sh', '-c', `exit ${code}`])
      const result = await cli.run(args)
      expect(result, told(), code, { ...NONE, outcome: 'completed', commandExitCode: code })
      assert.equal(result.stderr, '')
    })
  }
})

describe('B212: 128 + n when signal n ended the command', () => {
  for (const [signal, code] of [
    ['TERM', 143],
    ['KILL', 137],
    ['SEGV', 139],
    ['INT', 130],
    ['HUP', 129],
    ['ABRT', 134],
  ] as const) {
    test(`${code}: ${signal}`, async () => {
      const { args, told } = runArgs(['code', '--', 'sh', '-c', `kill -${signal} $$`])
      const result = await cli.run(args)
      expect(result, told(), code, { ...NONE, outcome: 'completed', signal: `SIG${signal}` })
      assert.equal(result.stderr, '')
    })
  }
})

describe('B212: 126 and 127 when it could not be started; the lease is let go', () => {
  before(() => {
    writeFileSync(join(cli.folder, 'plain'), '#!/bin/sh\n')
    writeFileSync(join(cli.folder, 'no-interpreter'), '#!/no/such/interpreter\n', { mode: 0o755 })
  })
  for (const [command, code, message] of [
    ['no-such-command', 127, /there is no command no-such-command/],
    ['', 127, /there is no command ''/],
    ['./no/such', 127, /there is no command/],
    ['./plain/below-a-file', 127, /there is no command/],
    ['./no-interpreter', 127, /there is no command/],
    ['./plain', 126, /\.\/plain is not executable/],
    ['/', 126, /is not executable/],
  ] as const) {
    test(`${code}: ${JSON.stringify(command)}`, async () => {
      const { args, told } = runArgs(['none', '--', command])
      const result = await cli.run(args)
      expect(result, told(), code, { ...NONE, outcome: 'not-started' })
      assert.match(result.stderr, ONE_LINE)
      assert.match(result.stderr, message)
      assert.equal((await cli.run(['show', 'none'])).code, 1, 'the key is free again')
    })
  }
})

test('0 and 1: done, and a definite no', async () => {
  for (const [args, code] of [
    [['--help'], 0],
    [['--version'], 0],
    [['run', '--help'], 0],
    [['ls'], 0],
    [['ls', '--json', 'none'], 0],
    [['show', 'free'], 1],
    [['show', '--json', 'free'], 1],
    [['revoke', 'free'], 1],
    [['revoke', '--force', '--yes', 'free'], 1],
  ] as const)
    assert.equal((await cli.run(args)).code, code, args.join(' '))
})

describe('64: bad usage', () => {
  const run = (...options: string[]) => ['run', ...options, 'k', '--', 'touch', 'ran']
  const cases: (readonly [args: readonly string[], env?: NodeJS.ProcessEnv])[] = [
    [[]],
    [['rnu', 'k', '--', 'true']],
    [['--ttl', '1s']],
    [['run']],
    [['run', 'k']],
    [['run', 'k', '--']],
    [['run', 'k', 'true']],
    [['run', '--', 'true']],
    [['run', 'a', 'b', '--', 'true']],
    [run('--no-such-option')],
    [run('--ttl')],
    [run('--ttl', '1s', '--ttl', '2s')],
    [run('--quiet=yes')],
    [run('--ttl', '10')],
    [run('--ttl', '10ms')],
    [run('--ttl', '2s', '--grace', '2s')],
    [run('--ttl', '24d', '--lock-delay', '24d')],
    [run('--min-hold', 'forever')],
    [run('--wait', '1s', '--no-wait')],
    [run('-E', '256')],
    [run('-E=-1')],
    [run('--label', '')],
    [run('--namespace', '')],
    [run('--json-log', '-')],
    [run('--json-log', 'no/such/folder')],
    [run('--store', 'etcd://h')],
    [run('--store', 'nonsense:x')],
    [run('--store', 'sqlite:a.db', '--store', 'sqlite:b.db')],
    [run('--store', 'refuse:')],
    [run(), { HOLDFAST_STORE: '' }],
    [run(), { HOLDFAST_STORE: 'refuse:' }],
    [['run', '', '--', 'true']],
    [['run', 'x'.repeat(1_025), '--', 'true']],
    [['ls', 'a', 'b']],
    [['ls', '--ttl', '1s']],
    [['show']],
    [['revoke']],
    [['revoke', '--force', 'k']],
  ]
  for (const [args, more] of cases) {
    test(JSON.stringify(args).slice(0, 60) + (more ? ` ${JSON.stringify(more)}` : ''), async () => {
      const { code, stdout, stderr } = await cli.run(args, more ? { env: more } : {})
      assert.deepEqual([code, stdout], [64, ''], stderr)
      if (args.length > 0) assert.match(stderr, ONE_LINE)
      assert.throws(() => readFileSync(join(cli.folder, 'ran')), { code: 'ENOENT' })
    })
  }
  test('told by the log, where the line could be read', async () => {
    const { args, told } = runArgs(['--ttl', '10', 'k', '--', 'true'])
    expect(await cli.run(args), told(), 64, { ...NONE, outcome: 'usage' })
  })
})

describe('69: the store is unavailable', () => {
  const nobody = (args: readonly string[]) =>
    isRoot
      ? cli.spawn('setpriv', ['--reuid', '65534', '--regid', '65534', '--clear-groups', process.execPath, ...args])
      : cli.spawn(process.execPath, args)
  before(() => writeFileSync(join(cli.folder, 'file'), ''))
  for (const [what, path] of [
    ['a folder that is not there', 'no/such/l.db'],
    ['a folder in its place', cli.folder],
    ['a part of its path is a file', 'file/l.db'],
  ] as const) {
    test(what, async () => {
      const { args, told } = runArgs(['--store', `sqlite:${path}`, 'k', '--', 'touch', 'ran'])
      const result = await cli.run(args)
      expect(result, told(), 69, { ...NONE, outcome: 'unavailable' })
      assert.match(result.stderr, ONE_LINE)
    })
  }
  test('a file that we may not read', async () => {
    const db = join(cli.folder, 'unreadable.db')
    await cli.run(['run', '--store', `sqlite:${db}`, 'k', '--', 'true'])
    chmodSync(cli.folder, 0o755)
    chmodSync(db, 0o000)
    for (const args of [
      ['run', '--store', `sqlite:${db}`, 'k', '--', 'true'],
      ['ls', '--store', `sqlite:${db}`],
    ]) {
      const { code, stderr } = await nobody([MAIN, ...args]).ended
      assert.equal(code, 69, stderr)
      assert.match(stderr, ONE_LINE)
    }
  })
  test('it went away during the wait, and stayed away to its end', async () => {
    const folder = join(cli.folder, 'going')
    mkdirSync(folder)
    const store = ['--store', `sqlite:${folder}/l.db`]
    const holder = cli.start(['run', ...store, 'k', '--', 'sh', '-c', 'echo up; exec sleep 300'])
    await holder.saw(/up/)
    const { args, told } = runArgs(['--wait', '3s', ...store, 'k', '--', 'touch', 'ran'])
    const waiter = cli.start(args)
    await waiter.saw(/waiting/)
    renameSync(folder, `${folder}-away`)
    const result = await waiter.ended
    renameSync(`${folder}-away`, folder)
    expect(result, told(), 69, { ...NONE, outcome: 'unavailable' })
    assert.match(result.stderr, /does not answer .*; still trying/)
    holder.process.kill('SIGTERM')
    await holder.ended
  })
})

test('70: a fault of holdfast itself, told as the last line all the same', async () => {
  const planted = 'data:text/javascript,setTimeout(()=>{throw(Error(`planted`))},500)'
  const { args, told } = runArgs(['--ttl', '1s', 'fault', '--', 'sleep', '300'])
  const result = await cli.run(args, { env: { NODE_OPTIONS: `--import=${planted}` } })
  expect(result, told(), 70, { ...NONE, outcome: 'fault', signal: 'SIGKILL' })
  assert.match(result.stderr, ONE_LINE)
})

test('74: what was asked for could not be written', async () => {
  const { code, stderr } = await cli.spawn('sh', ['-c', 'exec "$NODE" "$MAIN" ls --json >/dev/full'], { env }).ended
  assert.equal(code, 74)
  assert.match(stderr, ONE_LINE)
})

describe('75, or -E: held, or not ready, to the end of the wait', () => {
  let holder: Running
  before(async () => {
    holder = cli.start(['run', '--ttl', '60s', 'taken', '--', 'sh', '-c', 'echo up; exec sleep 300'])
    await holder.saw(/up/)
  })
  after(async () => {
    holder.process.kill('SIGTERM')
    await holder.ended
  })
  for (const [options, code] of [
    [['-n'], 75],
    [['--no-wait', '--quiet'], 75],
    [['--wait', '0s'], 75],
    [['--wait', '300ms'], 75],
    [['-n', '-E', '0'], 0],
    [['-n', '--conflict-exit-code', '255'], 255],
    // Codes of ours are allowed: the log tells them apart.
    [['-n', '-E', '76'], 76],
  ] as const) {
    test(`${code}: ${options.join(' ')}`, async () => {
      const { args, told } = runArgs([...options, 'taken', '--', 'touch', 'ran'])
      const result = await cli.run(args)
      expect(result, told(), code, { ...NONE, outcome: 'held' })
      assert.match(result.stderr, /"taken" is held by /)
    })
  }
  for (const [options, code] of [
    [['-n'], 75],
    [['--wait', '300ms', '-E', '9'], 9],
  ] as const) {
    test(`${code}: another process has the file locked: ${options.join(' ')}`, async () => {
      const unlock = cli.lockFile()
      const { args, told } = runArgs([...options, 'other', '--', 'touch', 'ran'])
      const result = await cli.run(args)
      unlock()
      expect(result, told(), code, { ...NONE, outcome: 'not-ready' })
      assert.match(result.stderr, /is not ready to grant "other"/)
    })
  }
})

describe('76: lost while the command ran, whatever its own code', () => {
  const command = ['--', 'sh', '-c', 'trap "exit 3" TERM; echo up; while :; do sleep 0.05; done']
  const losses: [reason: string, commandEnd: Partial<Told>, lose: (key: string) => Promise<unknown>][] = [
    ['revoked', { commandExitCode: 3 }, (key) => cli.run(['revoke', key])],
    ['missing', { signal: 'SIGKILL' }, async (key) => cli.sql(`DELETE FROM holdfast_leases WHERE name = '${key}'`)],
    [
      'taken',
      { signal: 'SIGKILL' },
      async (key) => cli.sql(`UPDATE holdfast_leases SET owner = 'another', fence = fence + 1 WHERE name = '${key}'`),
    ],
    [
      'expired',
      { commandExitCode: 3 },
      async () => {
        const unlock = cli.lockFile()
        setTimeout(unlock, 1_500)
      },
    ],
  ]
  for (const [reason, end, lose] of losses) {
    test(reason, async () => {
      const { args, told } = runArgs(['--ttl', '1s', reason, ...command])
      const runner = cli.start(args)
      await runner.saw(/up/)
      await lose(reason)
      expect(await runner.ended, told(), 76, { ...NONE, outcome: 'lost', reason, ...end })
    })
  }
  test('it ended with 0 meanwhile', async () => {
    const { args, told } = runArgs(['--ttl', '1s', 'late', '--', 'sh', '-c', 'echo up; sleep 0.3'])
    const runner = cli.start(args)
    await runner.saw(/up/)
    runner.process.kill('SIGSTOP')
    await delay(1_300)
    runner.process.kill('SIGCONT')
    expect(await runner.ended, told(), 76, { ...NONE, outcome: 'lost', reason: 'expired', commandExitCode: 0 })
  })
})

describe('78: the store is unsafe', () => {
  for (const [what, bytes] of [
    ['not a database', 'a letter to a friend\n'.repeat(500)],
    ['a damaged one', `SQLite format 3\0${'x'.repeat(8_000)}`],
  ] as const) {
    test(what, async () => {
      const path = join(cli.folder, `${what.replaceAll(' ', '-')}.db`)
      writeFileSync(path, bytes)
      const { args, told } = runArgs(['--store', `sqlite:${path}`, 'k', '--', 'touch', 'ran'])
      const result = await cli.run(args)
      expect(result, told(), 78, { ...NONE, outcome: 'unsafe' })
      assert.match(result.stderr, ONE_LINE)
    })
  }
})

describe('128 + n when signal n ended the wait; the command never runs', () => {
  for (const [signal, code] of [
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
    ['SIGTERM', 143],
  ] as const) {
    test(`${code}: ${signal}`, async () => {
      const holder = cli.start(['run', 'wait', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
      await holder.saw(/up/)
      const { args, told } = runArgs(['wait', '--', 'touch', 'ran'])
      const waiter = cli.start(args)
      await waiter.saw(/waiting/)
      waiter.process.kill(signal)
      const result = await waiter.ended
      expect(result, told(), code, { ...NONE, outcome: 'interrupted', signal })
      assert.match(
        result.stderr,
        new RegExp(`${signal} ended the wait for "wait" after .+; the command was not started\n$`),
      )
      holder.process.stdin?.end()
      assert.equal((await holder.ended).code, 0)
    })
  }
})

describe('B031: 128 + n when signal n was sent to holdfast and ended the command; the key is free at once', () => {
  for (const [signal, code] of [
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
    ['SIGTERM', 143],
  ] as const) {
    test(`${code}: ${signal}`, async () => {
      const { args, told } = runArgs(['--ttl', '60s', signal, '--', 'sh', '-c', 'echo up; exec sleep 300'])
      const runner = cli.start(args)
      await runner.saw(/up/)
      runner.process.kill(signal)
      const result = await runner.ended
      expect(result, told(), code, { ...NONE, outcome: 'completed', signal })
      assert.equal((await cli.run(['run', '-n', signal, '--', 'true'])).code, 0)
    })
  }
})

test('what was refused or interrupted never ran, and nothing is held', async () => {
  assert.throws(() => readFileSync(join(cli.folder, 'ran')), { code: 'ENOENT' })
  assert.equal((await cli.run(['ls', '--json', '--namespace', 'default'])).stdout, '[]\n')
})
