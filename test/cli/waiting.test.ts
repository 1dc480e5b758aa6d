/** What `run` says while it waits: a line for each change, and on a terminal one that is updated in place. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { bench, eventually, MAIN, ONE_LINE, type Running } from './support.js'

const cli = bench()
const env = { NODE: process.execPath, MAIN }
const hold = async (key: string, ...options: string[]): Promise<Running> => {
  const holder = cli.start(['run', ...options, key, '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
  await holder.saw(/up/)
  return holder
}
const letGo = async (holder: Running) => {
  holder.process.stdin?.end()
  assert.equal((await holder.ended).code, 0)
}
const linesOf = (text: string) => text.split('\n').slice(0, -1)

describe('where stderr is no terminal: one line for each change', () => {
  test('who, for how long, since when, which file on which host, what to do; then that it got the key', async () => {
    const holder = await hold('night', '--label', 'web-1:4711')
    const waiter = cli.start(['run', '--wait', '1h', 'night', '--', 'echo', 'ran'])
    await waiter.saw(/waiting/)
    await delay(1_200)
    await letGo(holder)
    const { code, stdout, stderr } = await waiter.ended
    assert.deepEqual([code, stdout], [0, 'ran\n'])
    const [held, got, ...rest] = linesOf(stderr)
    assert.deepEqual(rest, [])
    assert.match(
      held ?? '',
      /^holdfast: "night" is held by web-1:4711 for \d[\dms.]* \(fence \d+\), since \d\d:\d\d:\d\d, free in \S+ unless it is renewed; waiting up to 1h \(asked /,
    )
    assert.ok(held?.includes(`(asked ${cli.db} on ${hostname()}); ask for it back: holdfast revoke night`), held)
    const [, clock = ''] = / since (\d\d:\d\d:\d\d),/.exec(held ?? '') ?? []
    const [hours = 0, minutes = 0, seconds = 0] = clock.split(':').map(Number)
    const now = new Date()
    const ago = (now.getHours() - hours) * 3_600 + (now.getMinutes() - minutes) * 60 + now.getSeconds() - seconds
    assert.ok((ago + 86_400) % 86_400 < 60, `${clock} is ${ago} s ago`)
    assert.match(got ?? '', /^holdfast: got "night" after [12]\.?\d*s$/)
  })

  test('who else holds it: the holder of a busy key is not told each time', async () => {
    const first = await hold('busy', '--label', 'first')
    const waiter = cli.start(['run', 'busy', '--', 'true'])
    await waiter.saw(/held by first .*waiting/)
    cli.sql("UPDATE holdfast_leases SET label = 'second' WHERE name = 'busy'")
    await delay(1_500)
    assert.doesNotMatch(waiter.stderr(), /second/, 'too soon')
    await waiter.saw(/held by second .*still waiting/)
    assert.equal(linesOf(waiter.stderr()).length, 2)
    cli.sql("UPDATE holdfast_leases SET label = 'first' WHERE name = 'busy'")
    await letGo(first)
    assert.equal((await waiter.ended).code, 0)
  })

  test('the store is unreachable, and reachable again', async () => {
    const folder = join(cli.folder, 'store')
    mkdirSync(folder)
    const store = ['--store', `sqlite:${folder}/l.db`]
    const holder = await hold('away', '--ttl', '60s', ...store)
    const waiter = cli.start(['run', ...store, 'away', '--', 'true'])
    await waiter.saw(/waiting/)
    // The holder would notice it too, and let go at once.
    holder.process.kill('SIGSTOP')
    renameSync(folder, `${folder}-away`)
    await waiter.saw(/l\.db does not answer \(.+\); still trying to get "away"\n/)
    renameSync(`${folder}-away`, folder)
    await waiter.saw(/l\.db answers again\n/)
    holder.process.kill('SIGCONT')
    holder.process.kill('SIGTERM')
    await holder.ended
    waiter.process.kill('SIGTERM')
    await waiter.ended
  })

  test('key, label and path cannot forge a line or disturb a terminal', async () => {
    const [key, label] = ['a\nholdfast: got "a"', 'x\x1b[2Jy\u202e']
    const holder = await hold(key, '--label', label)
    const { code, stderr } = await cli.run(['run', '-n', key, '--', 'true'])
    assert.equal(code, 75)
    assert.match(stderr, ONE_LINE)
    assert.deepEqual(
      [...'\x1b\u202e'].filter((each) => stderr.includes(each)),
      [],
    )
    await letGo(holder)
  })

  test('--quiet: nothing but errors', async () => {
    const holder = await hold('quiet')
    const waiter = cli.start(['run', '--quiet', 'quiet', '--', 'echo', 'ran'])
    const interrupted = cli.start(['run', '--quiet', 'quiet', '--', 'echo', 'ran'])
    const late = await cli.run(['run', '--quiet', '--wait', '500ms', 'quiet', '--', 'echo', 'ran'])
    assert.equal(late.code, 75)
    assert.match(late.stderr, ONE_LINE)
    interrupted.process.kill('SIGTERM')
    const { code, stderr } = await interrupted.ended
    assert.deepEqual([code, stderr], [143, ''])
    await letGo(holder)
    const result = await waiter.ended
    assert.deepEqual([result.code, result.stdout, result.stderr], [0, 'ran\n', ''])
  })
})

describe('on a terminal: one line, updated in place', () => {
  /** `script` gives a terminal of its own; what it shows comes to its stdout. */
  const terminal = (line: string, more: NodeJS.ProcessEnv = {}) =>
    cli.spawn('script', ['-qec', line, '/dev/null'], { stdin: 'open', env: { ...env, TERM: 'xterm', ...more } })
  const ERASE = '\r\x1b[K'
  const waits = (key: string, options = '') => `"$NODE" "$MAIN" run ${options} ${key} -- echo "the command"`
  const updates = (text: string) =>
    text
      .split(ERASE)
      .slice(1)
      .map((each) => each.split('\n')[0] ?? '')
      .filter((each) => each.startsWith('holdfast: waiting'))
  const LABEL = 'a-rather-long-name-of-a-host.example.org:4711'
  let holder: Running
  before(async () => {
    holder = await hold('tty', '--label', LABEL)
  })
  after(() => letGo(holder))

  test('about once a second: the wait, the holder, how long it has had the key; gone before the command starts', async () => {
    const mine = await hold('turn', '--label', 'web-1:4711')
    const runner = terminal(`stty cols 120; ${waits('turn', '--wait 5m')}`)
    await runner.saw(/waiting 3s/)
    await letGo(mine)
    const { code, stdout } = await runner.ended
    assert.equal(code, 0)
    const shown = updates(stdout)
    assert.ok(shown.length >= 3 && shown.length <= 6, JSON.stringify(shown))
    assert.match(shown[2] ?? '', /^holdfast: waiting \ds of 5m for "turn": held for \ds by web-1:4711$/)
    const lines = stdout.split(/\r?\n/)
    assert.match(lines[0] ?? '', /^holdfast: "turn" is held by web-1:4711 .*; ask for it back: holdfast revoke turn$/)
    assert.ok((lines[1] ?? '').includes(`${ERASE}holdfast: got "turn" after`), lines[1])
    assert.equal(lines[2], 'the command')
  })

  test('never wider than the terminal, also after its size has changed', async () => {
    const widths = (text: string) => updates(text).map((each) => each.length)
    const runner = terminal(`stty cols 50; ${waits('tty')} & sleep 2.5; stty cols 30; wait`)
    await eventually('it was updated', () => updates(runner.stdout()).some((each) => each.length < 30), 10_000)
    const shown = updates(runner.stdout())
    assert.ok(Math.max(...widths(runner.stdout())) < 50, JSON.stringify(shown))
    assert.ok(shown[0]?.endsWith('…') && shown[0].length > 40, JSON.stringify(shown))
    runner.process.kill('SIGKILL')
  })

  test('a terminal that is stopped (Ctrl-S) holds up neither the command nor its lease', async () => {
    const mine = await hold('stopped')
    const done = join(cli.folder, 'done')
    const runner = terminal(`"$NODE" "$MAIN" run --ttl 1s stopped -- sh -c 'sleep 1.5; touch ${done}'`)
    await runner.saw(/waiting 1s/)
    runner.process.stdin?.write('\x13')
    await letGo(mine)
    await eventually('the command has run to its end', () => existsSync(done))
    runner.process.stdin?.write('\x11')
    assert.equal((await runner.ended).code, 0)
  })

  test('cleared when a signal ends the wait', async () => {
    const runner = terminal(waits('tty'))
    await runner.saw(/waiting 1s/)
    runner.process.stdin?.write('\x03')
    const { code, stdout } = await runner.ended
    assert.equal(code, 130)
    assert.match(
      stdout.slice(stdout.lastIndexOf(ERASE) + ERASE.length),
      /^(\^C)?holdfast: SIGINT ended the wait for "tty" after [^\n]+; the command was not started\r\n$/,
    )
  })

  describe('nothing of it', { concurrency: 3 }, () => {
    for (const [what, line, more] of [
      ['--quiet', waits('tty', '--quiet --wait 2500ms'), {}],
      ['TERM=dumb', waits('tty', '--wait 2500ms'), { TERM: 'dumb' }],
      ['no TERM', waits('tty', '--wait 2500ms'), { TERM: '' }],
      ['CI', waits('tty', '--wait 2500ms'), { CI: 'true' }],
      ['-n', waits('tty', '-n'), {}],
      ['stderr is a file', `${waits('tty', '--wait 2500ms')} 2>messages; cat messages; (exit 75)`, {}],
    ] as const) {
      test(`with ${what}`, async () => {
        const { code, stdout } = await terminal(line, more).ended
        assert.equal(code, 75, stdout)
        assert.match(stdout, /is held by/)
        assert.ok(!stdout.includes('\x1b'), stdout)
      })
    }
  })

  test('control: without any of these it is there', async () => {
    const { code, stdout } = await terminal(waits('tty', '--wait 2500ms')).ended
    assert.equal(code, 75, stdout)
    assert.equal(updates(stdout).length, 2, stdout)
  })

  test('a job in the background does not write into what is typed', async () => {
    const line = `set -m; ${waits('tty', '--wait 2500ms')} & wait; echo over`
    const { stdout } = await terminal(`sh -c '${line}'`).ended
    assert.match(stdout, /over/)
    assert.match(stdout, /is held by/)
    assert.ok(!stdout.includes('\x1b'), stdout)
  })
})
