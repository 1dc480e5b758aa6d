/** `holdfast run` as a user sees it: waiting, fences, exit codes, what the command gets. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { alive, bench, MAIN, ONE_LINE, pidsIn } from './support.js'

const cli = bench()

test('each run has a greater fence than the one before', async () => {
  const fences: bigint[] = []
  for (let round = 0; round < 3; round++) {
    const { code, stdout, stderr } = await cli.run(['run', 'fence', '--', 'sh', '-c', 'echo $HOLDFAST_FENCE'])
    assert.deepEqual([code, stderr], [0, ''])
    fences.push(BigInt(stdout.trim()))
  }
  assert.ok(
    fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? fence)),
    fences.join(' '),
  )
})

describe('with a second holder', () => {
  test('-n exits 75 at once and says who, since when, where, and what to do', async () => {
    const holder = cli.start(['run', '--label', 'first', 'taken', '--', 'sh', '-c', 'echo up; sleep 300'])
    await holder.saw(/up/)
    const { code, stdout, stderr } = await cli.run(['run', '-n', 'taken', '--', 'echo', 'ran'])
    assert.deepEqual([code, stdout], [75, ''])
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /"taken" is held by first for \d+(ms|\.\d+s|s) \(fence \d+\)/)
    assert.ok(stderr.includes(cli.db), stderr)
    assert.match(stderr, /holdfast revoke taken/)

    const other = await cli.run(['run', '-n', '-E', '0', 'taken', '--', 'echo', 'ran'])
    assert.deepEqual([other.code, other.stdout], [0, ''], '-E')

    const waiting = await cli.run(['run', '--wait', '1s', 'taken', '--', 'echo', 'ran'])
    assert.deepEqual([waiting.code, waiting.stdout], [75, ''])
    assert.ok(waiting.ms > 1_000 && waiting.ms < 2_500, `${waiting.ms} ms`)
    assert.equal(waiting.stderr.match(/waiting/g)?.length, 1, waiting.stderr)
    assert.match(waiting.stderr, /waited 1s/)

    const quiet = await cli.run(['run', '--wait', '300ms', '--quiet', 'taken', '--', 'echo', 'ran'])
    assert.match(quiet.stderr, ONE_LINE)

    const silent = await cli.run(['run', '-n', '-E', '0', '--quiet', 'taken', '--', 'echo', 'ran'])
    assert.deepEqual([silent.code, silent.stdout, silent.stderr], [0, '', ''], 'no failure, and only failures are told')
    holder.process.kill('SIGTERM')
    assert.equal((await holder.ended).code, 143)
  })

  test('it runs as soon as the first one ends', async () => {
    const first = cli.start(['run', 'turns', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
    await first.saw(/up/)
    const second = cli.start(['run', 'turns', '--', 'echo', 'second'])
    await second.saw(/waiting/)
    first.process.stdin?.end()
    assert.equal((await first.ended).code, 0)
    const { code, stdout } = await second.ended
    assert.deepEqual([code, stdout], [0, 'second\n'])
  })
})

describe('what the command gets', () => {
  test('B214: its arguments untouched', async () => {
    const args = ['-v', '--help', '--ttl', '5', '--', '', 'a b', '$HOME', '*', "'", '😀']
    const { code, stdout } = await cli.run(['run', 'k', '--', 'printf', '%s|', ...args])
    assert.deepEqual([code, stdout], [0, `${args.join('|')}|`])
  })

  test('stdin, byte for byte, and its end', async () => {
    const input = 'line\n\0\u0001ü'.repeat(100_000)
    const { stdout } = await cli.run(['run', 'k', '--', 'sh', '-c', 'cat | cksum'], { input })
    const bare = await cli.spawn('cksum', [], { input }).ended
    assert.equal(stdout, bare.stdout)
  })

  test('blocking pipes: many a program fails on EAGAIN', async () => {
    const script = 'for fd in 0 1 2; do awk "/flags/ { print \\$2 }" /proc/self/fdinfo/$fd; done'
    const { stdout } = await cli.run(['run', 'k', '--', 'sh', '-c', script])
    const flags = stdout
      .trim()
      .split('\n')
      .map((each) => Number.parseInt(each, 8) & 0o4000)
    assert.deepEqual(flags, [0, 0, 0])
  })

  test('arguments that are not UTF-8 are refused, never changed', async () => {
    const line = `exec "${process.execPath}" "$0" run k -- printf %s "$(printf 'a\\351b')"`
    const { code, stderr, stdout } = await cli.spawn('sh', ['-c', line, MAIN]).ended
    assert.deepEqual([code, stdout], [64, ''])
    assert.match(stderr, /not UTF-8/)
    assert.equal(
      (await cli.run(['run', 'k', '--', 'printf', '%s', '\ufffd'])).stdout,
      '\ufffd',
      'the character itself is fine',
    )
  })

  test('the key, the fence and the store, which a nested holdfast asks too', async () => {
    const db = join(cli.folder, 'my leases.db')
    const script = 'echo $HOLDFAST_KEY $HOLDFAST_STORE; cd /; "$NODE" "$MAIN" show --json "$HOLDFAST_KEY"'
    const env = { NODE: process.execPath, MAIN }
    const { code, stdout } = await cli.run(
      ['run', '--store', 'sqlite:my leases.db', 'outer', '--', 'sh', '-c', script],
      { env },
    )
    assert.equal(code, 0)
    const [first, ...json] = stdout.split('\n')
    assert.equal(first, `outer sqlite:${db.replace(' ', '%20')}`)
    assert.equal((JSON.parse(json.join('\n')) as { key: string }).key, 'outer')
  })

  test('a nested run on another key works, on the same key it says that it would wait for itself', async () => {
    const nested = (key: string, ...more: string[]) => [
      process.execPath,
      MAIN,
      'run',
      ...more,
      key,
      '--',
      'sh',
      '-c',
      'echo $HOLDFAST_KEY',
    ]
    const other = await cli.run(['run', 'a', '--', ...nested('b')])
    assert.deepEqual([other.code, other.stdout, other.stderr], [0, 'b\n', ''])
    const same = await cli.run(['run', 'a', '--', ...nested('a', '--wait', '300ms')])
    assert.deepEqual([same.code, same.stdout], [75, ''])
    assert.match(same.stderr, /leases are not re-entrant/)
  })

  test('--no-inherit-store: a nested call refuses to guess, with 64', async () => {
    const { code, stderr } = await cli.run(['run', '--no-inherit-store', 'a', '--', process.execPath, MAIN, 'ls'])
    assert.equal(code, 64)
    assert.match(stderr, /HOLDFAST_STORE is refuse:.*give --store URL/)
  })
})

test('what a command leaves behind is named and left alone', async () => {
  // One in its process group, one in a session of its own, both without a parent.
  const script =
    "(sleep 300 >&- 2>&- & echo pid $!); (setsid sh -c 'echo pid $$; exec sleep 300 >&- 2>&-' &); sleep 0.2"
  const { code, stdout, stderr } = await cli.run(['run', 'left', '--', 'sh', '-c', script])
  const pids = pidsIn(stdout)
  assert.deepEqual([code, pids.length], [0, 2])
  for (const pid of pids) {
    assert.match(stderr, new RegExp(`left behind.*sleep \\(pid ${pid}\\)`))
    assert.ok(alive(pid))
  }
  assert.equal((await cli.run(['show', 'left'])).code, 1, 'the lease ended with the command')
})

test('a lease is renewed for as long as the command runs', async () => {
  const runner = cli.start(['run', '--ttl', '300ms', 'long', '--', 'sh', '-c', 'echo up; read line'], { stdin: 'open' })
  await runner.saw(/up/)
  const began = performance.now()
  do assert.equal((await cli.run(['run', '-n', 'long', '--', 'true'])).code, 75)
  while (performance.now() - began < 1_200)
  runner.process.stdin?.end('done\n')
  const { code, stderr } = await runner.ended
  assert.deepEqual([code, stderr], [0, ''])
})

test('--min-hold keeps the key taken after a short command', async () => {
  assert.equal((await cli.run(['run', '--min-hold', '1s', 'min', '--', 'true'])).code, 0)
  assert.equal((await cli.run(['run', '-n', 'min', '--', 'true'])).code, 75)
  const later = await cli.run(['run', '--wait', '3s', 'min', '--', 'true'])
  assert.equal(later.code, 0)
})

test('nothing is left in the store when all is done', async () => {
  const { stdout } = await cli.run(['ls', '--json'])
  assert.equal(stdout, '[]\n')
})
