/** `ls --watch` and `show --watch` where a program reads them. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { alive, bench, eventually, MAIN, type Running } from './support.js'

const cli = bench()
const hold = async (key: string, label = key): Promise<Running> => {
  const holder = cli.start(['run', '--label', label, key, '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
  await holder.saw(/up/)
  return holder
}
const letGo = async (holder: Running): Promise<void> => {
  holder.process.stdin?.end()
  await holder.ended
}
const FAST = ['--watch', '--interval', '100ms']
/** How many bytes wait in a named pipe for a reader. */
const BYTES_IN = `import array, fcntl, os, sys, termios
count = array.array('i', [0])
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK), termios.FIONREAD, count)
print(count[0])`
const bytesIn = (pipe: string): number => Number(execFileSync('python3', ['-c', BYTES_IN, pipe], { encoding: 'utf8' }))
const lines = (running: Running): string[] => running.stdout().split('\n').slice(0, -1)

describe('--json --watch: one line for each change', () => {
  test('ls: arrays, and none for a renewal', async () => {
    const a = await hold('a')
    const watch = cli.start(['ls', '--json', ...FAST])
    await eventually('the first line', () => lines(watch).length === 1)
    const b = cli.start(['run', '--ttl', '400ms', 'b', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
    await eventually('b is there', () => lines(watch).length === 2)
    // Its lease is renewed every 133 ms: that is no change.
    const { remainingMs } = JSON.parse((await cli.run(['show', '--json', 'b'])).stdout) as { remainingMs: number }
    assert.ok(remainingMs <= 400)
    await letGo(b)
    await eventually('b is gone', () => lines(watch).length === 3)
    await letGo(a)
    await eventually('both are gone', () => lines(watch).at(-1) === '[]')
    const keys = lines(watch).map((line) => (JSON.parse(line) as { key: string }[]).map(({ key }) => key).join())
    assert.deepEqual(keys, ['a', 'a,b', 'a', ''])
    watch.process.kill('SIGINT')
    const { code, stderr } = await watch.ended
    assert.deepEqual([code, stderr], [130, ''])
  })

  test('show: an object, or null', async () => {
    const watch = cli.start(['show', '--json', ...FAST, 'k'])
    await eventually('free', () => lines(watch).length === 1)
    const k = await hold('k')
    await eventually('held', () => lines(watch).length === 2)
    assert.equal((await cli.run(['revoke', 'k'])).code, 0)
    await k.ended
    await eventually('free again', () => lines(watch).at(-1) === 'null' && lines(watch).length > 2)
    const states = lines(watch).map((line) => (JSON.parse(line) as { state: string } | null)?.state ?? null)
    assert.deepEqual([states[0], states[1], states.at(-1)], [null, 'held', null])
    watch.process.kill('SIGTERM')
    assert.equal((await watch.ended).code, 143)
  })
})

test('without --json: a moment and a table for each change, and nothing that steers a terminal', async () => {
  const watch = cli.start(['ls', ...FAST])
  await watch.saw(/^\d{4}-\d\d-\d\dT[\d:.]+Z\nnothing is held in namespace "default" of .*\n\n$/)
  const k = await hold('k')
  await watch.saw(/\n\d{4}-\d\d-\d\dT[\d:.]+Z\nKEY +FENCE .*\nk +\d+ +held +k .*\n\n$/)
  await letGo(k)
  watch.process.kill('SIGTERM')
  const { stdout } = await watch.ended
  assert.doesNotMatch(stdout, /\p{Cc}(?<!\n)/u)
})

describe('a reader that goes', () => {
  test('is noticed with the next change, and is no error', async () => {
    const line = `{ "${process.execPath}" ${MAIN} ls --json ${FAST.join(' ')}; echo "code $?" >&2; } | head -1`
    const watch = cli.spawn('bash', ['-c', line])
    await watch.saw(/^\[\]\n/)
    const k = await hold('k')
    // It stays until it was seen; its end is a second change, should the reader still have been there at the first.
    const seen = await Promise.race([watch.ended, delay(3_000)])
    await letGo(k)
    const { stdout, stderr } = seen ?? (await watch.ended)
    assert.deepEqual([stdout, stderr], ['[]\n', 'code 0\n'])
  })

  test('a reader that stalls does not keep a signal from ending it', async () => {
    const holders = await Promise.all(['p', 'q'].map((key) => hold(key, 'x'.repeat(200))))
    const script = `exec "${process.execPath}" ${MAIN} ls --watch --interval 100ms 1>&9`
    const line = `mkfifo f; exec 9<>f; head -c 65000 /dev/zero >&9; ${script}`
    const watch = cli.spawn('bash', ['-c', line])
    // Its table does not fit into what is left.
    await eventually('the pipe is as good as full', () => bytesIn(join(cli.folder, 'f')) === 65_000)
    await delay(700)
    assert.deepEqual([alive(watch.pid), bytesIn(join(cli.folder, 'f'))], [true, 65_000])
    watch.process.kill('SIGTERM')
    await watch.exited
    assert.equal(watch.process.signalCode, 'SIGTERM', 'which a shell calls 143')
    await Promise.all(holders.map(letGo))
  })
})

describe('a store that goes away while it is watched', () => {
  for (const args of [
    ['ls', '--json'],
    ['show', '--json', 'k'],
  ]) {
    test(`${args.join(' ')}: told once, tried again, told when it is back`, async () => {
      const k = await hold('k')
      await letGo(k)
      const watch = cli.start([...args, ...FAST])
      await eventually('the first line', () => lines(watch).length === 1)
      renameSync(cli.db, `${cli.db}.away`)
      writeFileSync(cli.db, 'no database at all '.repeat(500))
      await watch.saw(/trying again every 100ms\n/)
      renameSync(`${cli.db}.away`, cli.db)
      await watch.saw(/answers again\n/)
      const again = await hold('k')
      await eventually('it goes on', () => lines(watch).length === 2)
      await letGo(again)
      watch.process.kill('SIGTERM')
      const { code, stderr } = await watch.ended
      assert.equal(code, 143)
      assert.match(stderr, /^holdfast: [^\n]+; trying again every 100ms\nholdfast: [^\n]+ answers again\n$/)
    })
  }

  test('one that never answered is an error at once', async () => {
    const { code, stdout } = await cli.run(['ls', ...FAST, '--store', `sqlite:${cli.folder}/no/such.db`])
    assert.deepEqual([code, stdout], [69, ''])
  })
})

test('bad combinations are refused', async () => {
  for (const [args, message] of [
    [['ls', '--interval', '1s'], /--interval is for --watch/],
    [['show', '--interval', '1s', 'k'], /--interval is for --watch/],
    [['ls', '--watch', '--interval', '10ms'], /--interval must be at least 100ms, but got 10ms/],
    [['ls', '--watch', '--interval', '5'], /for seconds write 5s/],
    [['ls', '--watch', '--keys'], /--keys does not go with --watch/],
    [['ls', '--json', '--keys'], /--keys does not go with --json/],
  ] as const) {
    const { code, stdout, stderr } = await cli.run(args)
    assert.deepEqual([code, stdout], [64, ''])
    assert.match(stderr, message)
  }
})

test('ls --keys: the keys alone', async () => {
  const holders = await Promise.all(['b', 'a b', 'a\n'].map((key) => hold(key)))
  assert.equal((await cli.run(['ls', '--keys'])).stdout, 'a\\n\na b\nb\n')
  assert.equal((await cli.run(['ls', '--keys', 'b'])).stdout, 'b\n')
  await Promise.all(holders.map(letGo))
})
