/** On a real terminal, under a shell with job control: a command under `holdfast run` behaves as it would without. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type Terminal, terminals } from '../support/terminal.js'
import { needsCommands, WITHIN_MS } from '../support/tmux.js'
import { alive, bench, eventually, pidsIn } from './support.js'

const cli = bench()
const terminal = terminals(cli)
const withTmux = needsCommands('tmux', 'bash')
const path = (name: string) => join(cli.folder, name)
const text = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8') : '')
const linesOf = (name: string, line: string) =>
  text(name)
    .split('\n')
    .filter((each) => each === line).length

/**
 * `counter.mjs LOG`: notes each signal that it gets, and each line that it reads; `exit N` ends it. With `deaf` it reads
 * nothing, and ends with 5 when LOG.stop is there.
 */
writeFileSync(
  path('counter.mjs'),
  `import { appendFileSync, existsSync } from 'node:fs'
const [log, deaf] = process.argv.slice(2)
const note = (text) => appendFileSync(log, text + '\\n')
for (const name of ['TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'WINCH', 'CONT']) process.on('SIG' + name, () => note(name))
if (deaf) setInterval(() => existsSync(log + '.stop') && process.exit(5), 10)
else {
  let unread = ''
  process.stdin.setEncoding('utf8').on('data', (data) => {
    const lines = (unread + data).split('\\n')
    unread = lines.pop()
    for (const line of lines) {
      note('read ' + line)
      if (line.startsWith('exit ')) process.exit(Number(line.slice(5)))
    }
  })
}
note('pid ' + process.pid)
`,
)

/** Starts the counter, waits until it counts, and gives its log. */
async function count(on: Terminal, key: string, more = ''): Promise<string> {
  const log = `${key}.log`
  on.line(`holdfast run ${key} -- "$NODE" counter.mjs ${log} ${more}`)
  await eventually('the counter is up', () => text(log).includes('pid'), WITHIN_MS)
  return log
}
const noted = (log: string, line: string) => eventually(`${line} in ${log}`, () => linesOf(log, line) > 0, WITHIN_MS)
const holder = async (key: string) => Number(/:(\d+)/.exec((await cli.run(['show', key])).stdout)?.[1])

describe('programs that fill the screen', () => {
  test('vi: typed into, written, quit', needsCommands('tmux', 'bash', 'vi'), async () => {
    const on = await terminal()
    on.line('holdfast run edit -- vi -u NONE poem.txt')
    await on.sees(/^~ *$/m)
    on.type('ia line that was typed')
    await on.sees(/a line that was typed/)
    on.press('Escape')
    on.line(':wq')
    assert.equal(await on.prompt(), 0)
    assert.equal(text('poem.txt'), 'a line that was typed\n')
  })

  test('less: a page on, and quit', needsCommands('tmux', 'bash', 'less'), async () => {
    const on = await terminal(80, 20)
    writeFileSync(path('long.txt'), Array.from({ length: 100 }, (_, i) => `line ${i + 1} of it\n`).join(''))
    on.line('holdfast run read -- less long.txt')
    await on.sees(/^line 1 of it$/m)
    on.press('Space')
    await on.sees(/^line 38 of it$/m)
    on.press('q')
    assert.equal(await on.prompt(), 0)
  })

  test('less behind a pipe has the keyboard', needsCommands('tmux', 'bash', 'less'), async () => {
    const on = await terminal(80, 20)
    on.line("seq -f 'line %g of it' 100 | holdfast run read-pipe -- less")
    await on.sees(/^line 1 of it$/m)
    on.press('Space')
    await on.sees(/^line 38 of it$/m)
    on.press('q')
    assert.equal(await on.prompt(), 0)
  })
})

describe('keys that send signals', withTmux, () => {
  for (const [key, name] of [
    ['C-c', 'INT'],
    ['C-\\', 'QUIT'],
  ] as const) {
    test(`B210: ${key} reaches the command once, whose exit code counts`, async () => {
      const on = await terminal()
      const log = await count(on, `once-${name}`)
      on.press(key)
      await noted(log, name)
      on.line('go on')
      await noted(log, 'read go on')
      on.line('exit 9')
      assert.equal(await on.prompt(), 9)
      assert.equal(linesOf(log, name), 1)
    })
  }

  test('control: the counter counts twice what comes twice', async () => {
    const on = await terminal()
    const log = await count(on, 'twice')
    for (const times of [1, 2]) {
      on.press('C-c')
      await eventually(`${times} in ${log}`, () => linesOf(log, 'INT') === times)
    }
    on.line('exit 0')
    assert.equal(await on.prompt(), 0)
  })

  test('a command that does not mind them ends of them: 130 and 131', async () => {
    const on = await terminal()
    for (const [key, code] of [
      ['C-c', 130],
      ['C-\\', 131],
    ] as const) {
      on.line(`holdfast run ends -- sh -c 'ulimit -c 0; echo up; exec sleep 300'`)
      await on.sees(/^up$/m)
      on.press(key)
      assert.equal(await on.prompt(), code)
      assert.equal(await on.run('clear'), 0)
    }
  })

  test('Ctrl-C ends a loop of the shell, as it does without holdfast', async () => {
    const on = await terminal()
    on.line('while :; do echo round >> rounds; holdfast run loop -- sh -c "echo up >> rounds; exec sleep 60"; done')
    await eventually('the command runs', () => linesOf('rounds', 'up') === 1, WITHIN_MS)
    on.press('C-c')
    assert.equal(await on.prompt(), 130)
    assert.equal(linesOf('rounds', 'round'), 1)
  })

  test('Ctrl-C ends a wait with 130', async () => {
    const on = await terminal()
    const other = cli.start(['run', 'taken', '--', 'sh', '-c', 'echo up; sleep 300'])
    await other.saw(/up/)
    on.line('holdfast run taken -- true')
    await on.sees(/held by/)
    on.press('C-c')
    assert.equal(await on.prompt(), 130)
    other.process.kill('SIGTERM')
    assert.equal((await other.ended).code, 143)
  })
})

describe('job control', withTmux, () => {
  test('Ctrl-Z stops the job, fg continues it: the lease is held, input works', async () => {
    const on = await terminal()
    const log = await count(on, 'job')
    const pid = Number(/pid (\d+)/.exec(text(log))?.[1])
    on.press('C-z')
    assert.equal(await on.prompt(), 148)
    await eventually('the command is stopped', () => stateOf(pid) === 'T')
    assert.equal(stateOf(await holder('job')), 'T')
    assert.equal(await on.run('jobs'), 0)
    await on.sees(/\[1\]\+ +Stopped +holdfast run job/)
    assert.equal((await cli.run(['run', '-n', 'job', '--', 'true'])).code, 75)
    on.line('fg')
    await noted(log, 'CONT')
    on.line('typed after fg')
    await noted(log, 'read typed after fg')
    on.line('exit 3')
    assert.equal(await on.prompt(), 3)
    assert.equal(linesOf(log, 'CONT'), 1)
    assert.equal((await cli.run(['show', 'job'])).code, 1)
  })

  test('Ctrl-Z during the wait for the key, and fg', async () => {
    const on = await terminal()
    const other = cli.start(['run', 'awaited', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
    await other.saw(/up/)
    on.line('holdfast run awaited -- echo ran')
    await on.sees(/held by/)
    on.press('C-z')
    assert.equal(await on.prompt(), 148)
    other.process.stdin?.end()
    assert.equal((await other.ended).code, 0)
    on.line('fg')
    assert.equal(await on.prompt(), 0)
    await on.sees(/^ran$/m)
  })

  test('bg continues it in the background, and wait gives its exit code', async () => {
    const on = await terminal()
    const log = await count(on, 'bg', 'deaf')
    on.press('C-z')
    assert.equal(await on.prompt(), 148)
    assert.equal(await on.run('bg'), 0)
    await noted(log, 'CONT')
    writeFileSync(path(`${log}.stop`), '')
    assert.equal(await on.run('wait %1'), 5)
  })

  test('a background job that reads from the terminal is stopped, and fg lets it read', async () => {
    const on = await terminal()
    const script = 'echo pid $$ > reads.pids; read -r word; echo "got $word"; exit 4'
    assert.equal(await on.run(`holdfast run reads -- sh -c '${script}' &`), 0)
    await eventually('it is up', () => pidsIn(text('reads.pids')).length === 1, WITHIN_MS)
    await eventually('it is stopped', () => stateOf(pidsIn(text('reads.pids'))[0] ?? 0) === 'T')
    on.line('fg')
    on.line('something')
    assert.equal(await on.prompt(), 4)
    await on.sees(/^got something$/m)
  })

  for (const [what, kill, name] of [
    ['kill -TERM to holdfast', 'kill -TERM $!', 'TERM'],
    ['kill -INT to holdfast', 'kill -INT $!', 'INT'],
    ['kill -HUP to holdfast', 'kill -HUP $!', 'HUP'],
  ] as const) {
    test(`a background job gets a signal once: ${what}`, async () => {
      const on = await terminal()
      const key = what.replace(/\W+/g, '-')
      const log = `${key}.log`
      await on.run(`holdfast run ${key} -- "$NODE" counter.mjs ${log} deaf &`)
      await eventually('the counter is up', () => text(log).includes('pid'))
      await on.run(kill)
      await noted(log, name)
      // Behind whatever else came of it: holdfast hands on in order.
      process.kill(await holder(key), 'SIGUSR1')
      await noted(log, 'USR1')
      writeFileSync(path(`${log}.stop`), '')
      assert.equal(await on.run('wait %1'), 5)
      assert.equal(linesOf(log, name), 1)
    })
  }

  test('kill %1 ends a background job', async () => {
    const on = await terminal()
    for (const [kill, code] of [
      ['kill %1', 143],
      ['kill -INT %1', 130],
      ['kill -HUP %1', 129],
    ] as const) {
      await on.run(`holdfast run --quiet ended -- sh -c 'echo pid $$ > ended.pids; exec sleep 300' &`)
      await eventually('it is up', () => pidsIn(text('ended.pids')).length === 1, WITHIN_MS)
      assert.equal(await on.run(kill), 0)
      assert.equal(await on.run('wait %1'), code, kill)
      assert.deepEqual(pidsIn(text('ended.pids')).filter(alive), [])
      writeFileSync(path('ended.pids'), '')
    }
  })

  test('Ctrl-Z for longer than the TTL: all of it is dead before the next holder starts, and fg gives 76', async () => {
    const on = await terminal()
    writeFileSync(
      path('family.sh'),
      `echo pid $$ >> family.pids
       sleep 300 & echo pid $! >> family.pids
       setsid sh -c 'echo pid $$ >> family.pids; while :; do date +%s%N > family.tick; sleep 0.01; done' &
       wait`,
    )
    on.line('holdfast run --ttl 2s slept -- sh family.sh')
    await eventually(
      'the family is there',
      () => pidsIn(text('family.pids')).length === 3 && existsSync(path('family.tick')),
    )
    on.press('C-z')
    assert.equal(await on.prompt(), 148)
    const next = await cli.run(['run', 'slept', '--', 'date', '+%s%N'])
    assert.equal(next.code, 0)
    assert.deepEqual(pidsIn(text('family.pids')).filter(alive), [])
    const lastTick = BigInt(text('family.tick'))
    assert.ok(lastTick < BigInt(next.stdout), 'the old holder wrote while the next one had the key')
    on.line('fg')
    assert.equal(await on.prompt(), 76)
  })
})

function stateOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3)
}

describe('the terminal itself', withTmux, () => {
  test('a password prompt does not show what is typed, and the modes are as before', async () => {
    const on = await terminal()
    const before = await on.modes()
    on.line(`holdfast run password -- bash -c 'read -rsp "Password: " p; echo; echo "$p" > password.txt'`)
    await on.sees(/^Password:/m)
    on.line('swordfish')
    assert.equal(await on.prompt(), 0)
    assert.equal(text('password.txt'), 'swordfish\n')
    assert.doesNotMatch(on.screen(), /swordfish/)
    assert.equal(await on.modes(), before)
  })

  test('a program that asks for a password on /dev/tty, as sudo and ssh do', needsCommands('python3'), async () => {
    const on = await terminal()
    const script = `import getpass, sys; open("getpass.txt", "w").write(getpass.getpass("Secret: ") + sys.stdin.read())`
    on.line(`echo piped | holdfast run getpass -- python3 -c '${script}'`)
    await on.sees(/^Secret:/m)
    on.line('swordfish')
    assert.equal(await on.prompt(), 0)
    assert.equal(text('getpass.txt'), 'swordfishpiped\n')
    assert.doesNotMatch(on.screen(), /swordfish/)
  })

  for (const [what, line] of [
    ['a terminal', 'holdfast run dev-tty -- sh tty.sh'],
    ['a pipe', 'echo piped | holdfast run dev-tty -- sh tty.sh'],
    ['a file', 'holdfast run dev-tty -- sh tty.sh < tty.sh'],
    ['closed', 'holdfast run dev-tty -- sh tty.sh <&-'],
    ['a terminal, stdout and stderr are files', 'holdfast run dev-tty -- sh tty.sh > out.txt 2> err.txt'],
  ] as const) {
    test(`the command can open /dev/tty when stdin is ${what}`, async () => {
      const on = await terminal()
      writeFileSync(
        path('tty.sh'),
        'echo ready > /dev/tty; read -r word < /dev/tty; echo "got $word" > tty.txt; exit 6',
      )
      on.line(line)
      await on.sees(/^ready$/m)
      on.line(`typed beside ${what}`)
      assert.equal(await on.prompt(), 6)
      assert.equal(text('tty.txt'), `got typed beside ${what}\n`)
    })
  }

  for (const [what, before] of [
    ['a terminal', ''],
    ['a pipe', 'sleep 300 |'],
  ] as const) {
    test(`Ctrl-C and Ctrl-Z reach the command once when stdin is ${what}`, async () => {
      const on = await terminal()
      const log = `keys-${what.replace(' ', '-')}.log`
      on.line(`${before} holdfast run keys -- "$NODE" counter.mjs ${log} deaf`)
      await eventually('the counter is up', () => text(log).includes('pid'), WITHIN_MS)
      on.press('C-z')
      assert.equal(await on.prompt(), 148)
      on.line('fg')
      await noted(log, 'CONT')
      on.press('C-c')
      await noted(log, 'INT')
      process.kill(await holder('keys'), 'SIGUSR1')
      await noted(log, 'USR1')
      writeFileSync(path(`${log}.stop`), '')
      assert.equal(await on.prompt(), 5)
      assert.equal(linesOf(log, 'CONT'), 1)
      assert.equal(linesOf(log, 'INT'), 1)
    })
  }

  test('a change of its size reaches the command, once', async () => {
    const on = await terminal(90, 20)
    const log = await count(on, 'size')
    on.resize(70, 25)
    await noted(log, 'WINCH')
    on.line('exit 0')
    assert.equal(await on.prompt(), 0)
    assert.equal(linesOf(log, 'WINCH'), 1)
    on.line(`holdfast run size -- sh -c 'stty size'`)
    await on.sees(/^25 70$/m)
    assert.equal(await on.prompt(), 0)
  })

  test('a command that is killed in raw mode leaves the modes as they were', async () => {
    const on = await terminal()
    const before = await on.modes()
    on.line(`holdfast run raw -- sh -c 'stty raw -echo; echo up > raw.txt; exec sleep 300'`)
    await eventually('it is up', () => text('raw.txt') === 'up\n', WITHIN_MS)
    assert.equal((await cli.run(['revoke', '--force', '--yes', 'raw'])).code, 0)
    assert.equal(await on.prompt(), 76)
    assert.equal(await on.modes(), before)
    // Control: what is compared shows a change.
    assert.equal(await on.run('stty -ixon'), 0)
    assert.notEqual(await on.modes(), before)
  })

  describe('a background job that ends while a program in front has modes of its own', () => {
    /** Gives what these modes were before and after the end of the job, which waits for a file. */
    async function modesInFront(job: string): Promise<[string, string]> {
      const on = await terminal()
      for (const each of ['up', 'stop', 'go']) rmSync(path(`front.${each}`), { force: true })
      await on.run(`${job} &`)
      await eventually('it is up', () => existsSync(path('front.up')), WITHIN_MS)
      const own = 'stty raw -echo; stty -g > front.before; touch front.stop'
      on.line(`${own}; while [ ! -e front.go ]; do sleep 0.01; done; stty -g > front.after; stty sane`)
      const pid = Number(text('front.up'))
      await eventually('the job has ended', () => existsSync(path('front.stop')) && !alive(pid), WITHIN_MS)
      writeFileSync(path('front.go'), '')
      assert.equal(await on.prompt(), 0)
      return [text('front.before'), text('front.after')]
    }

    test('does not touch them', async () => {
      const command =
        'echo $PPID > front.up.new; mv front.up.new front.up; while [ ! -e front.stop ]; do sleep 0.01; done'
      const [before, after] = await modesInFront(`holdfast run behind -- sh -c '${command}'`)
      assert.equal(after, before)
    })

    test('control: any other program of Node does', async () => {
      const program = `const fs = require("fs"); fs.writeFileSync("front.up", String(process.pid)); setInterval(() => fs.existsSync("front.stop") && process.exit(0), 10)`
      const [before, after] = await modesInFront(`"$NODE" -e '${program}'`)
      assert.notEqual(after, before)
    })
  })

  test('closing it ends everything, and the key is free', async () => {
    const on = await terminal()
    on.line(`holdfast run closed -- sh -c 'echo pid $$ > closed.pids; sleep 300 & echo pid $! >> closed.pids; wait'`)
    await eventually('both are there', () => pidsIn(text('closed.pids')).length === 2, WITHIN_MS)
    const pids = [...pidsIn(text('closed.pids')), await holder('closed')]
    on.close()
    await eventually('all have ended', () => !pids.some(alive))
    assert.equal((await cli.run(['show', 'closed'])).code, 1)
  })

  test('closing it hangs up on a job in the background too, once', async () => {
    const on = await terminal()
    const log = 'hung-up.log'
    await on.run(`holdfast run hung-up -- "$NODE" counter.mjs ${log} deaf &`)
    await eventually('the counter is up', () => text(log).includes('pid'))
    on.close()
    await noted(log, 'HUP')
    process.kill(await holder('hung-up'), 'SIGUSR1')
    await noted(log, 'USR1')
    assert.equal(linesOf(log, 'HUP'), 1)
    writeFileSync(path(`${log}.stop`), '')
  })
})
