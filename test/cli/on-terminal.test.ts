/** What `ls`, `show` and `revoke --force` do on a terminal, where a person looks at them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { needsCommands, screen as open, type Screen } from '../support/tmux.js'
import { alive, bench, MAIN, type Running } from './support.js'

const cli = bench()
const HOLDFAST = `'${process.execPath}' '${MAIN}'`
const LONG = `job:invoices:${'x'.repeat(80)}:tenant-42`
const hold = async (key: string, label: string): Promise<Running> => {
  const holder = cli.start(['run', '--label', label, key, '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
  await holder.saw(/up/)
  return holder
}

describe('on a terminal', needsCommands('tmux'), () => {
  const holders: Running[] = []
  before(async () => {
    holders.push(await hold(LONG, `deploy-${'y'.repeat(60)}:4711`), await hold('short', 'web-1'))
  })
  after(async () => {
    for (const holder of holders) holder.process.stdin?.end()
    await Promise.all(holders.map((holder) => holder.ended))
  })

  for (const columns of [160, 80, 60, 30]) {
    test(`ls: each row is one line of ${columns} columns, cut with …`, async () => {
      const terminal = open(cli, `ls-${columns}`, `${HOLDFAST} ls; echo; echo done; cat`, { columns, rows: 24 })
      await terminal.sees(/^done/m)
      const [heads = '', first = '', second = '', empty] = terminal.lines()
      assert.match(heads, /^KEY .*HOLDER/)
      assert.match(first, columns > 30 ? /^job:in.*….*tenant-42 .* deploy.*….*:4711 / : /^jo.*…/)
      assert.match(second, /^short +/)
      assert.equal(empty, '', 'no row went over two lines')
      assert.equal(/FENCE/.test(heads), columns > 80, 'what matters least goes first')
    })
  }

  test('control: in a pipe nothing is cut, whatever COLUMNS says', async () => {
    const { stdout } = await cli.run(['ls'], { env: { COLUMNS: '40' } })
    assert.ok(stdout.includes(`${LONG} `), stdout)
    assert.doesNotMatch(stdout, /…/)
  })

  test('ls --watch: changes in place; Ctrl-C ends it with 130 and gives the terminal back', async () => {
    const line = `echo before; ${HOLDFAST} ls --watch --interval 200ms; echo "code $?"; cat`
    const terminal = open(cli, 'watch', `bash --norc -c 'trap : INT; ${line.replaceAll("'", `'\\''`)}'`)
    await terminal.sees(/every 200ms, Ctrl-C ends it\n\nKEY .*\njob:.*\nshort /)
    assert.deepEqual(terminal.state(), { secondScreen: true, cursor: false })
    const late = await hold('late', 'three')
    await terminal.sees(/^late .*three/m)
    late.process.stdin?.end()
    await late.ended
    const screen = await terminal.sees(/KEY(?![\s\S]*^late )/m)
    assert.equal(screen.match(/^KEY/gm)?.length, 1, 'drawn over what was there')
    terminal.resize(60, 4)
    await terminal.sees(/^… and \d+ more/m)
    terminal.resize(100, 24)
    terminal.press('C-c')
    const end = await terminal.sees(/code \d+/)
    assert.match(end, /^before\n(?:\^C)?code 130\n/)
    assert.deepEqual(terminal.state(), { secondScreen: false, cursor: true })
  })

  test('show --watch: TERM gives the terminal back as well; a key that is let go is shown as free', async () => {
    const line = `echo before; ${HOLDFAST} show --watch --interval 200ms brief & echo $! >watch.pid; wait $!; echo "code $?"; cat`
    const brief = await hold('brief', 'web-7')
    const terminal = open(cli, 'show', `sh -c '${line.replaceAll("'", `'\\''`)}'`)
    await terminal.sees(/state +held\nholder +web-7\n/)
    brief.process.stdin?.end()
    await brief.ended
    await terminal.sees(/state +free\n(?:.*\n)*next +to take it: holdfast run brief -- command/)
    const pid = Number(readFileSync(join(cli.folder, 'watch.pid'), 'utf8'))
    process.kill(pid, 'SIGTERM')
    assert.match(await terminal.sees(/code \d+/), /^before\ncode 143\n/)
    assert.deepEqual(terminal.state(), { secondScreen: false, cursor: true })
  })

  test('a watch that is stopped gives the terminal to the shell, and takes it again', async () => {
    const terminal = open(cli, 'stop', 'bash --norc -i')
    terminal.type(`${HOLDFAST} ls --watch`)
    terminal.press('Enter')
    await terminal.sees(/Ctrl-C ends it/)
    terminal.press('C-z')
    await terminal.sees(/Stopped/)
    assert.deepEqual(terminal.state(), { secondScreen: false, cursor: true })
    terminal.type('fg')
    terminal.press('Enter')
    await terminal.sees(/Ctrl-C ends it/)
    assert.deepEqual(terminal.state(), { secondScreen: true, cursor: false })
    terminal.press('C-c')
    await terminal.sees(/fg\n/)
  })

  describe('revoke --force asks, and says whom it would harm', () => {
    const asked = async (name: string): Promise<Screen> => {
      const terminal = open(
        cli,
        name,
        `bash --norc -c "trap : INT; ${HOLDFAST} revoke --force short; echo code \\$?; cat"`,
      )
      await terminal.sees(
        /^holdfast: "short" is held by web-1 for .*web-1 may still be working, and another could begin beside it\. Free it now\? \[y\/N\]/m,
      )
      return terminal
    }
    for (const [name, keys, expected] of [
      ['no', ['n', 'Enter'], /nothing was changed; .* holdfast revoke short\ncode 1\n/],
      ['enter', ['Enter'], /nothing was changed; .*\ncode 1\n/],
      ['garbage', ['yess', 'Enter'], /nothing was changed; .*\ncode 1\n/],
      ['ctrl-d', ['C-d'], /\[y\/N\] *\nholdfast: nothing was changed; .*\ncode 1\n/],
      ['ctrl-c', ['C-c'], /\^C *\n?code 130\n/],
    ] as const) {
      test(name, async () => {
        const terminal = await asked(name)
        terminal.press(...keys)
        assert.match(await terminal.sees(/code \d+/), expected)
        assert.equal((await cli.run(['show', 'short'])).code, 0, 'it is held as before')
      })
    }

    test('yes to one holder is no yes to the next', async () => {
      const one = await hold('passed-on', 'one')
      const line = `${HOLDFAST} revoke --force passed-on; echo code \\$?; cat`
      const terminal = open(cli, 'passed-on', `bash --norc -c "${line}"`)
      await terminal.sees(/held by one .*\[y\/N\]/)
      one.process.stdin?.end()
      await one.ended
      const two = await hold('passed-on', 'two')
      terminal.press('y', 'Enter')
      await terminal.sees(/meanwhile "passed-on" is held by two .*\[y\/N\]/)
      assert.ok(alive(two.pid))
      terminal.press('y', 'Enter')
      await terminal.sees(/"passed-on" is free now.*\ncode 0\n/)
      assert.equal(await two.exited, 76)
    })
  })
})
