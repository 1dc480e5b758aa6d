/** Signals reach the command once; on a terminal, the terminal's own are not sent a second time. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { alive, bench, eventually, MAIN, pidsIn } from './support.js'

const cli = bench()

/** Prints each signal that it gets, and is ended by KILL. */
const COUNTER = join(cli.folder, 'counter.mjs')
writeFileSync(
  COUNTER,
  `const seen = process.argv[2]
for (const name of ['TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'WINCH', 'CONT']) {
  process.on('SIG' + name, () => console.log(seen + ' got ' + name))
}
console.log('pid ' + process.pid)
setTimeout(() => process.exit(9), 60_000)
`,
)
const count = (text: string, what: string) => text.split('\n').filter((line) => line.trim() === what).length

test('B210: TERM, INT, HUP, QUIT, USR1, USR2, WINCH and CONT are forwarded, once each', async () => {
  const runner = cli.start(['run', 'signals', '--', process.execPath, COUNTER, 'command'])
  await runner.saw(/pid/)
  const names = ['TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'WINCH', 'CONT']
  for (const name of names) {
    runner.process.kill(`SIG${name}` as NodeJS.Signals)
    await runner.saw(new RegExp(`got ${name}`))
  }
  await delay(200)
  for (const name of names) assert.equal(count(runner.stdout(), `command got ${name}`), 1, name)
  assert.equal(runner.stderr(), '')
  process.kill(pidsIn(runner.stdout())[0] ?? 0, 'SIGKILL')
  assert.equal((await runner.ended).code, 137)
})

test('B213: TERM reaches the children of a shell; USR1 is for the command alone', async () => {
  const script = `trap 'echo shell got USR1' USR1; "${process.execPath}" ${COUNTER} child & echo pid $!; trap : TERM; wait; wait; wait; exit 4`
  const runner = cli.start(['run', 'group', '--', 'sh', '-c', script])
  await eventually('both are there', () => pidsIn(runner.stdout()).length === 2)
  runner.process.kill('SIGUSR1')
  await runner.saw(/shell got USR1/)
  runner.process.kill('SIGTERM')
  await runner.saw(/child got TERM/)
  assert.equal(count(runner.stdout(), 'child got USR1'), 0)
  assert.equal(count(runner.stdout(), 'child got TERM'), 1)
  process.kill(pidsIn(runner.stdout())[0] ?? 0, 'SIGKILL')
  assert.equal((await runner.ended).code, 4)
})

describe('TSTP and CONT without a terminal', () => {
  const stateOf = (pid: number) => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]

  test('holdfast stops its command, then itself; CONT lets both go on, and the lease is still held', async () => {
    const runner = cli.start(['run', 'paused', '--', process.execPath, COUNTER, 'command'])
    await runner.saw(/pid/)
    const command = pidsIn(runner.stdout())[0] ?? 0
    runner.process.kill('SIGTSTP')
    await eventually('both are stopped', () => stateOf(command) === 'T' && stateOf(runner.pid) === 'T')
    assert.equal((await cli.run(['run', '-n', 'paused', '--', 'true'])).code, 75)
    runner.process.kill('SIGCONT')
    await runner.saw(/got CONT/)
    runner.process.kill('SIGUSR1')
    await runner.saw(/got USR1/)
    assert.equal(count(runner.stdout(), 'command got CONT'), 1)
    process.kill(command, 'SIGKILL')
    assert.equal((await runner.ended).code, 137)
  })

  test('a command that minds TSTP is told before it is stopped', async () => {
    const script = "trap 'echo told' TSTP; echo pid $$; while :; do sleep 0.01; done"
    const runner = cli.start(['run', 'told', '--', 'sh', '-c', script])
    await runner.saw(/pid/)
    const command = pidsIn(runner.stdout())[0] ?? 0
    runner.process.kill('SIGTSTP')
    await runner.saw(/^told$/m)
    await eventually('both are stopped', () => stateOf(command) === 'T' && stateOf(runner.pid) === 'T')
    runner.process.kill('SIGCONT')
    await eventually('both go on', () => stateOf(command) !== 'T' && stateOf(runner.pid) !== 'T')
    runner.process.kill('SIGTERM')
    assert.equal((await runner.ended).code, 143)
  })

  test('while it waits for the key, it stops and goes on too', async () => {
    const holder = cli.start(['run', 'awaited', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
    await holder.saw(/up/)
    const waiter = cli.start(['run', 'awaited', '--', 'echo', 'ran'])
    await waiter.saw(/waiting/)
    waiter.process.kill('SIGTSTP')
    await eventually('it is stopped', () => stateOf(waiter.pid) === 'T')
    holder.process.stdin?.end()
    assert.equal((await holder.ended).code, 0)
    waiter.process.kill('SIGCONT')
    assert.equal((await waiter.ended).stdout, 'ran\n')
  })
})

describe('on a terminal', () => {
  /** `script` gives a terminal of its own; what is written to its stdin is typed. */
  const terminal = (line: string) =>
    cli.spawn('script', ['-qec', line, '/dev/null'], { stdin: 'open', env: { NODE: process.execPath, MAIN, COUNTER } })

  test('B210: Ctrl-C reaches the command once, and TERM to holdfast is forwarded', async () => {
    const runner = terminal('exec "$NODE" "$MAIN" run tty -- "$NODE" "$COUNTER" command')
    await runner.saw(/pid \d+/)
    runner.process.stdin?.write('\x03')
    await runner.saw(/got INT/)
    await delay(200)
    assert.equal(
      count(runner.stdout(), 'command got INT') + count(runner.stdout(), '^Ccommand got INT'),
      1,
      runner.stdout(),
    )
    const holdfast = /held by [^:]+:(\d+)/.exec((await cli.run(['run', '-n', 'tty', '--', 'true'])).stderr)?.[1]
    process.kill(Number(holdfast), 'SIGTERM')
    await runner.saw(/got TERM/)
    await delay(200)
    assert.equal(count(runner.stdout(), 'command got TERM'), 1)
    process.kill(Number(/pid (\d+)/.exec(runner.stdout())?.[1]), 'SIGKILL')
    assert.equal((await runner.ended).code, 137)
  })

  test('the command keeps the terminal', async () => {
    const runner = terminal(
      'exec "$NODE" "$MAIN" run tty -- sh -c "test -t 0 && test -t 1 && : </dev/tty && read -r word && echo got $word it"'.replace(
        '$word',
        '\\$word',
      ),
    )
    await delay(400)
    runner.process.stdin?.write('typed\n')
    const { code, stdout } = await runner.ended
    assert.equal(code, 0, stdout)
    assert.match(stdout, /got typed it/)
  })

  test('a lost lease ends the whole tree there too', async () => {
    const script = "setsid sh -c 'echo pid $$; exec sleep 300' & sleep 300 & echo pid $!; echo pid $$; wait"
    writeFileSync(join(cli.folder, 'tree.sh'), script)
    const runner = terminal('exec "$NODE" "$MAIN" run --ttl 1s tty-lost -- sh tree.sh')
    const pids = () => [...runner.stdout().matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid))
    await eventually('three are there', () => pids().length === 3)
    for (const pid of pids()) cli.mind(pid)
    cli.sql("DELETE FROM holdfast_leases WHERE name = 'tty-lost'")
    assert.equal((await runner.ended).code, 76)
    assert.deepEqual(pids().filter(alive), [])
  })
})
