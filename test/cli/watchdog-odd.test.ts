/** The watchdog where something else is missing, too: faults that were found by looking for them. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { companions } from '../support/run-losses.js'
import { alive, bench, eventually, lastTick, MAIN, pidsIn, ticker } from './support.js'

const cli = bench()
const namespaces = spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0
const privileged = namespaces || process.env.CI ? {} : { skip: 'needs the right to make namespaces' }

test('one that dies again and again is replaced by one, and the command goes on', async () => {
  const runner = cli.start(
    ['run', '--ttl', '3s', 'again', '--', 'sh', '-c', "trap 'echo got TERM' TERM; echo up; read line"],
    {
      stdin: 'open',
    },
  )
  await runner.saw(/up/)
  for (let death = 0; death < 6; death++) {
    await eventually('it is there', () => companions(runner.pid).watchdog > 0, 10_000)
    process.kill(companions(runner.pid).watchdog, 'SIGKILL')
    await eventually('it is gone', () => companions(runner.pid).watchdog === 0 || death < 2)
  }
  // Longer than the longest deadline that any of them was told.
  await delay(6_000)
  runner.process.stdin?.end('end\n')
  const { code, stdout, stderr } = await runner.ended
  assert.deepEqual([code, stdout, stderr], [0, 'up\n', ''])
})

test('without /proc: TERM, and KILL for who ignores it, when holdfast is stopped', privileged, async () => {
  const file = join(cli.folder, 'unseen')
  // A /proc that shows another pid namespace is none.
  const args = [
    '--pid',
    '--fork',
    process.execPath,
    MAIN,
    'run',
    '--ttl',
    '1s',
    'unseen',
    '--',
    'sh',
    '-c',
    ticker(file),
  ]
  const outer = cli.spawn('unshare', args)
  await eventually('it ticks', () => lastTick(file) > 0)
  const holdfast = Number(execFileSync('pgrep', ['-P', String(outer.pid)], { encoding: 'utf8' }))
  process.kill(holdfast, 'SIGSTOP')
  const stopped = Date.now()
  await eventually('it does not tick any more', () => Date.now() - lastTick(file) > 300, 5_000)
  assert.ok(lastTick(file) < stopped + 1_000, `${lastTick(file) - stopped} ms`)
  process.kill(holdfast, 'SIGCONT')
  assert.equal((await outer.ended).code, 76)
})

test('Node is gone when holdfast and watchdog are killed: the sentinel kills the group itself', async () => {
  const node = join(cli.folder, 'node')
  copyFileSync(process.execPath, node)
  const runner = cli.spawn(node, [
    MAIN,
    'run',
    '--ttl',
    '30s',
    'upgraded',
    '--',
    'sh',
    '-c',
    'echo pid $$; sleep 300 & echo pid $!; wait',
  ])
  await eventually('both are there', () => pidsIn(runner.stdout()).length === 2)
  await eventually('the watchdog too', () => companions(runner.pid).watchdog > 0)
  rmSync(node)
  const { watchdog } = companions(runner.pid)
  for (const pid of [runner.pid, watchdog]) process.kill(pid, 'SIGKILL')
  await eventually('both are dead', () => !pidsIn(runner.stdout()).some(alive))
  await runner.ended
})

test('no descriptor is left to look with: a revoked command is dead all the same, and holdfast ends', async () => {
  const runner = cli.start(['run', '--ttl', '2s', 'descriptors', '--', 'sh', '-c', 'echo pid $$; exec sleep 300'])
  await runner.saw(/pid/)
  await delay(300)
  execFileSync('prlimit', ['--pid', String(runner.pid), '--nofile=3:3'])
  cli.sql("DELETE FROM holdfast_leases WHERE name = 'descriptors'")
  await eventually('it is dead', () => !pidsIn(runner.stdout()).some(alive))
  await eventually('holdfast too', () => !alive(runner.pid), 15_000)
  await runner.ended
})

describe('a reader of stderr that stalls', () => {
  /** Its stderr is a pipe that is full, and that nobody reads. */
  const stalled = (command: string) =>
    cli.spawn(
      'sh',
      [
        '-c',
        `exec 3>&1; { head -c 1000000 /dev/zero >&2 & sleep 0.3; ${command} } 2>&1 >&3 | sh -c 'echo pid $$ >&3; exec sleep 60'`,
      ],
      {
        env: { NODE: process.execPath, MAIN },
      },
    )

  test('does not keep holdfast from ending', async () => {
    const done = join(cli.folder, 'done')
    const shell = stalled(`"$NODE" "$MAIN" run k -- no-such-command; echo $? > ${done}; kill $$;`)
    await eventually('it has ended', () => existsSync(done), 8_000)
    shell.process.kill('SIGKILL')
  })
})

test('TSTP and CONT in a row: nobody stays stopped', async () => {
  const runner = cli.start(['run', '--ttl', '1s', 'in a row', '--', 'sh', '-c', 'echo up; sleep 2; echo done'])
  await runner.saw(/up/)
  runner.process.kill('SIGTSTP')
  await delay(20)
  runner.process.kill('SIGCONT')
  const { code, stdout } = await runner.ended
  assert.deepEqual([code, stdout], [0, 'up\ndone\n'])
})

test('killed in its first moments: the key is free long before the TTL', async () => {
  const runner = cli.start(['run', '--ttl', '60s', 'early', '--', 'sh', '-c', 'echo up; exec sleep 300'])
  await runner.saw(/up/)
  await delay(100)
  runner.process.kill('SIGKILL')
  const next = await cli.run(['run', '--wait', '5s', 'early', '--', 'true'])
  assert.equal(next.code, 0)
  await runner.ended
})
