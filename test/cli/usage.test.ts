/** Which store is asked, and what is refused before anything is done. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { bench, ONE_LINE } from './support.js'

const cli = bench()

describe('which store', () => {
  test('a scheme without a store yet, several stores, an unknown scheme: 64, one line, no password', async () => {
    for (const [store, message] of [
      [['etcd://user:secret@h'], /etcd at h:2379: this version has no store for etcd yet; use sqlite:path or redis:/],
      [['postgres://user:secret@h/db?password=secret'], /postgres at h:5432: this version/],
      [['redsi://user:secret@h'], /did you mean redis:/],
      [['redis://user:sec/ret@h'], /store redis:\/\/\*\*\*@h: /],
      [['redis://:secret@a', 'redis://:secret@b', 'redis://:secret@c'], /several stores make a quorum.*3 were given/],
    ] as const) {
      for (const how of [
        { args: store.flatMap((url) => ['--store', url]), env: {} },
        { args: [], env: { HOLDFAST_STORE: store.join(' ') } },
      ]) {
        for (const args of [
          ['run', ...how.args, 'k', '--', 'true'],
          ['ls', ...how.args],
          ['show', ...how.args, 'k'],
          ['run', ...how.args, 'k', 'true'],
        ]) {
          const { code, stderr } = await cli.run(args, { env: how.env })
          assert.equal(code, 64)
          assert.match(stderr, ONE_LINE)
          if (args.includes('--') || args[0] !== 'run') assert.match(stderr, message)
          assert.doesNotMatch(stderr, /secret|sec\/ret/)
        }
      }
    }
  })

  test('a HOLDFAST_STORE that is set but names nothing is refused, not passed over', async () => {
    for (const [text, word] of [
      ['', 'empty'],
      [' ', 'blank'],
      ['\t\n', 'blank'],
    ] as const) {
      for (const args of [['run', 'k', '--', 'true'], ['ls'], ['show', 'k'], ['revoke', 'k']]) {
        const { code, stderr } = await cli.run(args, { env: { HOLDFAST_STORE: text } })
        assert.equal(code, 64)
        assert.match(stderr, ONE_LINE)
        assert.match(stderr, new RegExp(`HOLDFAST_STORE is set but ${word}; set it .* or unset it`))
      }
      const given = ['ls', '--json', '--store', `sqlite:${cli.folder}/given.db`]
      assert.equal((await cli.run(given, { env: { HOLDFAST_STORE: text } })).code, 0, '--store goes first')
    }
  })

  test('refuse: is blamed on where it came from', async () => {
    const given = await cli.run(['ls', '--store', 'refuse:'], { env: { HOLDFAST_STORE: 'sqlite:x.db' } })
    assert.equal(given.code, 64)
    assert.match(given.stderr, /^holdfast: --store refuse: names no store/)
    const inherited = await cli.run(['ls'], { env: { HOLDFAST_STORE: 'refuse:' } })
    assert.equal(inherited.code, 64)
    assert.match(inherited.stderr, /^holdfast: HOLDFAST_STORE is refuse:/)
  })

  test('--store goes before HOLDFAST_STORE', async () => {
    const [a, b] = ['a.db', 'b.db'].map((name) => join(cli.folder, name))
    await cli.run(['run', '--store', `sqlite:${a}`, 'k', '--', 'true'], { env: { HOLDFAST_STORE: `sqlite:${b}` } })
    assert.deepEqual([existsSync(a ?? ''), existsSync(b ?? '')], [true, false])
    await cli.run(['run', 'k', '--', 'true'], { env: { HOLDFAST_STORE: ` sqlite:${b} ` } })
    assert.equal(existsSync(b ?? ''), true)
  })
})

describe('options of run are checked before anything is done', () => {
  const cases: [string[], RegExp][] = [
    [['--ttl', '10'], /--ttl must be a duration with its unit.*write 10s/],
    [['--ttl', '0s'], /--ttl must be at least 133ms, .*but got 0s/],
    [['--ttl', '10ms'], /--ttl must be at least 133ms, .*but got 10ms/],
    [
      ['--ttl', '2s', '--grace', '1s'],
      /--grace must be at most \d+ms with --ttl 2s, but got 1s: .*--ttl of at least 2s810ms/,
    ],
    [['--wait', 'Forever'], /\(ms, s, m, h or d\).* or forever, but got "Forever"/],
    [['--wait', '30d'], /at most 24d20h31m23s647ms .*, or forever/],
    [
      ['--ttl', '24d', '--lock-delay', '24d'],
      /--lock-delay must be at most 20h31m23s647ms with --ttl 24d .*but got 24d$/m,
    ],
    [['--wait', 'soon'], /--wait must be a duration/],
    [['--wait', '1s', '-n'], /exclude each other/],
    [['--grace', 'forever'], /--grace must be a duration/],
    [['-E', '256'], /from 0 to 255/],
    [['-E', '1.5'], /from 0 to 255/],
    [['--namespace', ''], /--namespace must be a non-empty string/],
    [['--label', 'x'.repeat(300)], /--label must be at most 255 bytes/],
  ]
  for (const [options, message] of cases) {
    test(options.join(' ').slice(0, 40), async () => {
      const { code, stdout, stderr } = await cli.run(['run', ...options, 'k', '--', 'echo', 'ran'])
      assert.deepEqual([code, stdout], [64, ''], stderr)
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, message)
    })
  }
  test('keys: empty and too long are refused, 1,024 bytes are not', async () => {
    for (const [key, expected] of [
      ['', 64],
      ['x'.repeat(1_025), 64],
      ['x'.repeat(1_024), 0],
      ['{a}:/.. 😀', 0],
      ['-n', 0],
    ] as const) {
      const args = key === '-n' ? ['run', 'x', '--', 'true'] : ['run', key, '--', 'true']
      assert.equal((await cli.run(args)).code, expected, JSON.stringify(key.slice(0, 20)))
    }
  })
})

test('keys that begin with a dash are within reach of every command', async () => {
  for (const key of ['-k', '--json', '--']) {
    const holder = cli.start(['run', '--label', 'dashed', '--', key, '--', 'sh', '-c', 'echo up; cat'], {
      stdin: 'open',
    })
    await holder.saw(/up/)
    const shown = await cli.run(['show', '--', key])
    assert.equal(shown.code, 0, shown.stderr)
    assert.ok(shown.stdout.includes(`holdfast revoke -- ${key}\n`), shown.stdout)
    assert.match((await cli.run(['ls', '--', key])).stdout, new RegExp(`^${key} .*dashed`, 'm'))
    const second = await cli.run(['run', '-n', '--', key, '--', 'true'])
    assert.equal(second.code, 75, second.stderr)
    assert.equal((await cli.run(['revoke', '--', key])).code, 0)
    assert.equal((await holder.exited) === 76, true)
  }
})

test('warnings of Node never reach stderr', async () => {
  const planted = 'data:text/javascript,setTimeout(()=>process.emitWarning(`planted`),150)'
  const { stderr, code } = await cli.run(['run', 'k', '--', 'sleep', '0.2'], {
    env: { NODE_OPTIONS: `--import=${planted}` },
  })
  assert.deepEqual([code, stderr], [0, ''])
})
