/** `run --json-log`: what is in it, and that it never harms the run. The outcomes are in exit-codes.test.ts. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { alive, bench, eventually, FAMILY, MAIN, ONE_LINE, pidsIn } from './support.js'

const cli = bench()
const env = { NODE: process.execPath, MAIN }
const file = (name: string) => join(cli.folder, name)
type Line = Record<string, unknown>
const linesOf = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
const events = (lines: readonly Line[]) => lines.map(({ event }) => event)

const COMMON = ['time', 'event', 'host', 'pid', 'namespace', 'key', 'store', 'fence']
/** What docs/cli.md promises beside the common fields. */
const FIELDS: Record<string, readonly string[]> = {
  waiting: ['because'],
  acquired: ['waitedMs', 'attempts'],
  started: ['commandPid'],
  'at-risk': ['message', 'remainingMs'],
  renewed: [],
  terminating: ['killInMs'],
  killing: [],
  'watchdog-acting': [],
  lost: ['reason'],
  ended: ['commandExitCode', 'signal'],
  released: ['outcome'],
  outcome: [
    ...['outcome', 'exitCode', 'commandPid', 'commandExitCode', 'signal', 'reason'],
    ...['waitedMs', 'heldForMs', 'message'],
  ],
}

function checkSchema(lines: readonly Line[], pid: number): void {
  for (const line of lines) {
    const fields = FIELDS[String(line.event)] ?? assert.fail(`no such event: ${line.event}`)
    for (const field of [...COMMON, ...fields]) assert.ok(field in line, `${line.event} lacks ${field}`)
    assert.match(String(line.time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.ok(Math.abs(Date.parse(String(line.time)) - Date.now()) < 60_000)
    assert.deepEqual([line.host, line.pid], [hostname(), pid])
  }
}

test('a whole run, after a wait: one line per change, the outcome last, the fence as text', async () => {
  const holder = cli.start(['run', '--label', 'first', 'whole', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
  await holder.saw(/up/)
  const log = file('whole.log')
  const script = 'echo fence $HOLDFAST_FENCE; echo pid $$; sleep 0.2; exit 76'
  const runner = cli.start(['run', '--namespace', 'default', '--json-log', log, 'whole', '--', 'sh', '-c', script])
  await runner.saw(/waiting/)
  await eventually('it is told at once', () => readFileSync(log, 'utf8').endsWith('}\n'))
  holder.process.stdin?.end()
  const { code, stdout } = await runner.ended
  assert.equal(code, 76)
  const lines = linesOf(log)
  checkSchema(lines, runner.pid)
  assert.deepEqual(events(lines), ['waiting', 'acquired', 'started', 'ended', 'released', 'outcome'])
  const [waiting, acquired, started] = lines
  assert.deepEqual([waiting?.because, waiting?.holder, waiting?.fence], ['held', 'first', null])
  const fence = /^fence (\d+)$/m.exec(stdout)?.[1]
  assert.equal(acquired?.fence, fence)
  assert.equal(started?.commandPid, pidsIn(stdout)[0])
  const outcome = lines.at(-1) ?? {}
  assert.deepEqual(
    [outcome.namespace, outcome.key, outcome.store, outcome.fence, outcome.outcome, outcome.exitCode],
    ['default', 'whole', cli.db, fence, 'completed', 76],
  )
  const { waitedMs, heldForMs } = outcome
  assert.ok(Number.isInteger(waitedMs) && Number(waitedMs) > 0, `${waitedMs}`)
  assert.ok(Number.isInteger(heldForMs) && Number(heldForMs) >= 200 && Number(heldForMs) < 10_000, `${heldForMs}`)
})

test('a child that exits 76 by itself is told apart from a loss', async () => {
  const outcome = async (key: string, lose: boolean) => {
    const log = file(`${key}.log`)
    const script = lose ? 'echo up; sleep 300' : 'echo up; exit 76'
    const runner = cli.start(['run', '--ttl', '1s', '--json-log', log, key, '--', 'sh', '-c', script])
    await runner.saw(/up/)
    if (lose) cli.sql(`DELETE FROM holdfast_leases WHERE name = '${key}'`)
    assert.equal((await runner.ended).code, 76)
    const { outcome, commandExitCode, signal, reason } = linesOf(log).at(-1) ?? {}
    return { outcome, commandExitCode, signal, reason }
  }
  assert.deepEqual(await outcome('own', false), {
    ...{ outcome: 'completed', commandExitCode: 76, signal: null, reason: null },
  })
  assert.deepEqual(await outcome('lost', true), {
    ...{ outcome: 'lost', commandExitCode: null, signal: 'SIGKILL', reason: 'missing' },
  })
})

describe('the night of a lease', () => {
  test('at risk, and renewed again: each told once', async () => {
    const log = file('hiccup.log')
    const runner = cli.start([
      'run',
      '--ttl',
      '2s',
      '--json-log',
      log,
      'hiccup',
      '--',
      'sh',
      '-c',
      'echo up; sleep 2.5',
    ])
    await runner.saw(/up/)
    const unlock = cli.lockFile()
    await eventually('it is at risk', () => events(linesOf(log)).includes('at-risk'))
    unlock()
    assert.equal((await runner.ended).code, 0)
    const lines = linesOf(log)
    checkSchema(lines, runner.pid)
    assert.deepEqual(events(lines), ['acquired', 'started', 'at-risk', 'renewed', 'ended', 'released', 'outcome'])
    assert.match(String(lines[2]?.message), /locked by another process/)
  })

  test('at risk, ended, lost: in this order, with the reason', async () => {
    const log = file('night.log')
    const args = ['run', '--ttl', '3s', '--json-log', log, 'gone', '--', 'sh', '-c', `trap '' TERM\n${FAMILY}`]
    const runner = cli.start(args)
    await eventually('the family is there', () => pidsIn(runner.stdout()).length === 4)
    const unlock = cli.lockFile()
    const { code } = await runner.ended
    unlock()
    assert.equal(code, 76)
    const lines = linesOf(log)
    checkSchema(lines, runner.pid)
    const told = events(lines)
    // On a loaded host the watchdog may be the one who acts in time.
    const end = told.findIndex((event) => event === 'terminating' || event === 'watchdog-acting')
    assert.ok(told.includes('at-risk') && told.indexOf('at-risk') < end, String(told))
    for (const later of ['ended', 'lost', 'released']) assert.ok(told.indexOf(later) > end, String(told))
    assert.equal(told.filter((event) => event === 'lost').length, 1)
    assert.equal(told.at(-1), 'outcome')
    assert.equal(lines.at(-1)?.reason, 'expired')
  })
})

test('B218: a release without an answer costs the command neither its code nor its outcome; the key is free after one TTL', async () => {
  const log = file('release.log')
  const script = 'echo up; sleep 0.3; exit 5'
  const runner = cli.start([
    'run',
    '--ttl',
    '1s',
    '--grace',
    '0s',
    '--json-log',
    log,
    'release',
    '--',
    'sh',
    '-c',
    script,
  ])
  await runner.saw(/up/)
  const unlock = cli.lockFile()
  const { code } = await runner.ended
  unlock()
  const lines = linesOf(log)
  assert.deepEqual([code, lines.at(-1)?.outcome, lines.at(-1)?.commandExitCode], [5, 'completed', 5])
  assert.equal(lines.find(({ event }) => event === 'released')?.outcome, 'unknown')
  const next = await cli.run(['run', '--wait', '10s', 'release', '--', 'true'])
  assert.equal(next.code, 0)
  assert.ok(next.ms < 3_000, `${next.ms} ms`)
})

describe('the file', () => {
  test('is made for its owner only, and appended to', async () => {
    const log = file('mode.log')
    await cli.run(['run', '--json-log', log, 'k', '--', 'true'])
    assert.equal(statSync(log).mode & 0o777, 0o600)
    const before = readFileSync(log, 'utf8')
    await cli.run(['run', '--json-log', 'mode.log', 'k', '--', 'true'])
    assert.ok(readFileSync(log, 'utf8').startsWith(before))
    assert.deepEqual(events(linesOf(log)).filter((event) => event === 'outcome').length, 2)
  })

  test('may be shared by runs at the same time: no line is torn', async () => {
    const log = file('shared.log')
    const keys = Array.from({ length: 8 }, (_, index) => `shared-${index % 2}`)
    await Promise.all(keys.map((key) => cli.run(['run', '--json-log', log, key, '--', 'true'])))
    const lines = linesOf(log)
    assert.equal(lines.filter(({ event }) => event === 'outcome').length, keys.length)
    assert.equal(new Set(lines.map(({ pid }) => pid)).size, keys.length)
  })

  test('is not for the command: it does not inherit it', async () => {
    const script = 'for fd in /proc/self/fd/*; do readlink $fd; done'
    const { stdout } = await cli.run(['run', '--json-log', file('fd.log'), 'k', '--', 'sh', '-c', script])
    assert.doesNotMatch(stdout, /fd\.log/)
  })

  mkdirSync(file('folder'))
  writeFileSync(file('plain'), '')
  symlinkSync('circle', file('circle'))
  execFileSync('mkfifo', [file('fifo')])
  for (const [path, message] of [
    ['', /must be the path of a file, but got ""/],
    ['-', /must be the path of a file, but got "-"/],
    ['no/such/folder.log', /its folder does not exist/],
    ['folder', /it is a folder/],
    ['plain/below', /should be its folder is a file/],
    ['circle', /links lead nowhere/],
    ['fifo', /nobody reads this FIFO/],
    ['/proc/self/nothing.log', /but got "\/proc\/self\/nothing\.log"/],
    ['x'.repeat(300), /its name is too long/],
  ] as const) {
    test(`refused before anything is acquired: ${path.slice(0, 30) || 'an empty one'}`, async () => {
      const { code, stdout, stderr, ms } = await cli.run(['run', `--json-log=${path}`, 'k', '--', 'touch', 'ran'])
      assert.deepEqual([code, stdout], [64, ''], stderr)
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, message)
      assert.ok(!existsSync(file('ran')))
      assert.ok(ms < 5_000, `${ms} ms`)
    })
  }
})

describe('a log that cannot be written never harms the run', () => {
  test('a full disk: one line about it, the code is the command’s', async () => {
    const { code, stdout, stderr } = await cli.run([
      'run',
      '--quiet',
      '--json-log',
      '/dev/full',
      'k',
      '--',
      'sh',
      '-c',
      'echo ran; exit 5',
    ])
    assert.deepEqual([code, stdout], [5, 'ran\n'])
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /could not write to --json-log \/dev\/full \(ENOSPC\).*the run itself is not affected/)
  })

  test('a disk that is full for a while: what was cut off does not swallow the lines that come later', async (t) => {
    const inside = [
      'mkdir small; mount -t tmpfs -o size=8k none small || exit 99',
      'head -c 4096 /dev/zero >small/filler; head -c 3999 /dev/zero | tr "\\0" x >small/log; echo >>small/log',
      '"$NODE" "$MAIN" run --json-log small/log k -- rm small/filler; echo "ended $?"; cat small/log',
    ].join('\n')
    const { code, stdout, stderr } = await cli.spawn('unshare', ['-m', 'sh', '-c', inside], { env }).ended
    if (code !== 0 && !stdout.includes('ended')) return t.skip(`no file system of our own here: ${stderr}`)
    assert.match(stdout, /^ended 0$/m)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /could not write to --json-log small\/log \(its last \d+ bytes did not fit\)/)
    const [cut, ...whole] = stdout.trimEnd().split('\n').slice(2)
    assert.match(cut ?? '', /^\{"time":.{70,}[^}]$/)
    const told = events(whole.map((line) => JSON.parse(line) as Line))
    assert.deepEqual(told.slice(-3), ['ended', 'released', 'outcome'])
  })

  test('a FIFO whose reader does not read: the run goes on, and ends', async () => {
    execFileSync('mkfifo', [file('stalled')])
    const reader = cli.spawn('sh', ['-c', 'exec 3<stalled; echo reading; exec sleep 300'])
    const writer = cli.spawn('sh', [
      '-c',
      'exec 4>stalled; echo filling; dd if=/dev/zero bs=4096 count=16 >&4; echo full; exec sleep 300',
    ])
    await Promise.all([reader.saw(/reading/), writer.saw(/full/)])
    const { code, stdout, stderr } = await cli.run([
      'run',
      '--json-log',
      file('stalled'),
      'k',
      '--',
      'sh',
      '-c',
      'echo ran; exit 5',
    ])
    assert.deepEqual([code, stdout], [5, 'ran\n'])
    assert.match(stderr, /could not write to --json-log .*\(EAGAIN\)/)
    for (const each of [reader, writer]) each.process.kill('SIGKILL')
  })
})

test('holdfast killed with -9 tells no outcome: a log without one means that', async () => {
  const log = file('killed.log')
  const runner = cli.start([
    'run',
    '--ttl',
    '1s',
    '--json-log',
    log,
    'killed',
    '--',
    'sh',
    '-c',
    'echo pid $$; exec sleep 300',
  ])
  await runner.saw(/pid/)
  await eventually('the start is told', () => events(linesOf(log)).includes('started'))
  runner.process.kill('SIGKILL')
  await runner.exited
  assert.ok(!events(linesOf(log)).includes('outcome'))
  for (const pid of pidsIn(runner.stdout())) if (alive(pid)) process.kill(pid, 'SIGKILL')
  await runner.ended
})
