/** `ls`, `show`, `revoke`, and the errors of the store as the command line shows them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { bench, MAIN, ONE_LINE, type Running } from './support.js'

const cli = bench()
const HOSTILE = 'evil\x1b[2J\nholdfast: forged \u202e'

describe('who holds what', () => {
  const holders: Running[] = []
  before(async () => {
    for (const [key, label] of [
      ['job:a', 'one'],
      ['job:b', 'two'],
      ['zzz', 'three'],
      [HOSTILE, '\x1b[31mred'],
    ] as const) {
      holders.push(cli.start(['run', '--label', label, key, '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' }))
    }
    await Promise.all(holders.map((holder) => holder.saw(/up/)))
  })
  after(async () => {
    for (const holder of holders) holder.process.stdin?.end()
    await Promise.all(holders.map((holder) => holder.ended))
  })

  test('ls: a table, sorted, with every key on one line and nothing that disturbs a terminal', async () => {
    const { code, stdout, stderr } = await cli.run(['ls'])
    assert.deepEqual([code, stderr], [0, ''])
    const [heads, ...rows] = stdout.trimEnd().split('\n')
    assert.match(heads ?? '', /^KEY +FENCE +STATE +HOLDER +HELD FOR +TTL LEFT +WAITING$/)
    assert.equal(rows.length, 4)
    assert.match(rows[0] ?? '', /^evil\\x1b\[2J\\nholdfast: forged \\u202e +\d+ +held +\\x1b\[31mred /)
    assert.match(rows[1] ?? '', /^job:a +\d+ +held +one +[\d.]+m?s +[\d.]+s +-$/)
    assert.doesNotMatch(stdout, /\p{Cc}(?<!\n)/u)
  })

  test('ls with a prefix', async () => {
    const { stdout } = await cli.run(['ls', 'job:'])
    assert.deepEqual(stdout.match(/^\S+/gm), ['KEY', 'job:a', 'job:b'])
  })

  test('ls --json: one array, fences as strings, no owner', async () => {
    const { stdout, stderr } = await cli.run(['ls', '--json', 'job:'])
    assert.equal(stderr, '')
    const list = JSON.parse(stdout) as Record<string, unknown>[]
    assert.deepEqual(
      list.map(({ key, label, state, namespace }) => [key, label, state, namespace]),
      [
        ['job:a', 'one', 'held', 'default'],
        ['job:b', 'two', 'held', 'default'],
      ],
    )
    for (const each of list) {
      assert.match(String(each.fence), /^\d+$/)
      assert.equal(typeof each.fence, 'string')
      assert.ok(Number.isInteger(each.heldForMs) && Number.isInteger(each.remainingMs))
      assert.equal('owner' in each, false)
    }
  })

  test('ls | head -1: a reader that goes is no error', async () => {
    const line = `{ "${process.execPath}" ${MAIN} ls; echo "code $?" >&2; } | head -1`
    const { stdout, stderr } = await cli.spawn('sh', ['-c', line]).ended
    assert.match(stdout, /^KEY[^\n]*\n$/)
    assert.equal(stderr, 'code 0\n')
    const closed = await cli.spawn('sh', [
      '-c',
      `{ sleep 0.5; "${process.execPath}" ${MAIN} ls; echo "code $?" >&2; } | true`,
    ]).ended
    assert.equal(closed.stderr, 'code 0\n', 'gone before the first byte')
  })

  test('show: facts of one key, and JSON', async () => {
    const { code, stdout } = await cli.run(['show', 'job:a'])
    assert.equal(code, 0)
    assert.match(
      stdout,
      /^key +job:a\nstate +held\nholder +one\nheld for +\S+\nttl left +\S+\nfence +\d+\nstore +\S+leases\.db\nto end it +holdfast revoke job:a\n$/,
    )
    const json = JSON.parse((await cli.run(['show', '--json', 'job:a'])).stdout) as Record<string, unknown>
    assert.deepEqual([json.key, json.label, typeof json.fence], ['job:a', 'one', 'string'])
  })

  test('another namespace sees nothing', async () => {
    assert.equal((await cli.run(['ls', '--json', '--namespace', 'other'])).stdout, '[]\n')
    assert.equal((await cli.run(['show', '--namespace', 'other', 'job:a'])).code, 1)
    assert.equal((await cli.run(['run', '-n', '--namespace', 'other', 'job:a', '--', 'true'])).code, 0)
  })

  test('a key with escape characters disturbs no message', async () => {
    for (const args of [
      ['run', '-n', HOSTILE, '--', 'true'],
      ['show', '--namespace', 'other', HOSTILE],
      ['run', HOSTILE, 'x'],
    ]) {
      const { stderr } = await cli.run(args)
      assert.match(stderr, ONE_LINE)
      assert.doesNotMatch(stderr, /\p{Cc}(?<!\n)|\u202e/u)
    }
  })

  test('--force without a terminal needs --yes', async () => {
    const { code, stderr } = await cli.run(['revoke', '--force', 'zzz'])
    assert.equal(code, 64)
    assert.match(stderr, /say --yes/)
    assert.equal((await cli.run(['show', 'zzz'])).code, 0)
  })
})

describe('a free key', () => {
  test('show exits 1, --json prints null; revoke exits 1; ls says so', async () => {
    const shown = await cli.run(['show', 'free'])
    assert.deepEqual([shown.code, shown.stdout], [1, ''])
    assert.match(shown.stderr, /"free" is free/)
    const json = await cli.run(['show', '--json', 'free'])
    assert.deepEqual([json.code, json.stdout, json.stderr], [1, 'null\n', ''])
    const revoked = await cli.run(['revoke', 'free'])
    assert.equal(revoked.code, 1)
    assert.match(revoked.stderr, /nobody holds "free"/)
    assert.deepEqual(JSON.parse((await cli.run(['revoke', '--json', 'free'])).stdout), {
      key: 'free',
      outcome: 'absent',
    })
    assert.match(
      (await cli.run(['ls', 'none:'])).stderr,
      /nothing that begins with "none:" is held in namespace "default" of /,
    )
  })

  test('looking creates no file: a mistyped path is not an answer', async () => {
    const path = join(cli.folder, 'typo.db')
    for (const args of [['ls'], ['show', 'k'], ['revoke', 'k']]) {
      await cli.run([...args, '--store', `sqlite:${path}`])
      assert.equal(existsSync(path), false)
    }
  })
})

test('the default store: a private folder and file in the state directory', async () => {
  const home = join(cli.folder, 'home')
  mkdirSync(home)
  for (const [env, folder] of [
    [{ HOME: home, XDG_STATE_HOME: '' }, join(home, '.local/state/holdfast')],
    [{ HOME: home, XDG_STATE_HOME: join(home, 'state') }, join(home, 'state/holdfast')],
    [{ HOME: join(home, 'x'), XDG_STATE_HOME: 'relative' }, join(home, 'x/.local/state/holdfast')],
  ] as const) {
    assert.equal((await cli.run(['run', 'k', '--', 'true'], { env })).code, 0)
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    assert.equal(statSync(join(folder, 'leases.db')).mode & 0o777, 0o600)
  }
})

describe('errors of the store: one line, the right code, what to do', () => {
  const isRoot = process.getuid?.() === 0
  const cases: [string, () => string, number, RegExp][] = [
    ['a missing folder', () => join(cli.folder, 'no/such/leases.db'), 69, /no folder .*mkdir -p/],
    ['a folder', () => cli.folder, 69, /is a folder/],
    ['not SQLite', () => file('text.db', 'hello '.repeat(1000)), 78, /not a SQLite database/],
    ['of a newer schema', () => newerSchema(), 78, /schema 99, written by a newer release/],
    ['part of the path is a file', () => join(file('plain', ''), 'x.db'), 69, /no folder/],
  ]
  function file(name: string, text: string): string {
    const path = join(cli.folder, name)
    writeFileSync(path, text)
    return path
  }
  function newerSchema(): string {
    const path = join(cli.folder, 'newer.db')
    spawnSync(process.execPath, [MAIN, 'run', '--store', `sqlite:${path}`, 'k', '--', 'true'])
    cli.sql('UPDATE holdfast_meta SET schema = 99', path)
    return path
  }
  for (const [what, path, expected, message] of cases) {
    test(what, async () => {
      const store = ['--store', `sqlite:${path()}`]
      for (const args of [
        ['run', ...store, 'k', '--', 'echo', 'ran'],
        ['ls', ...store],
        ['show', ...store, 'k'],
      ]) {
        const { code, stdout, stderr } = await cli.run(args)
        assert.deepEqual([code, stdout], [expected, ''], `${args.join(' ')}: ${stderr}`)
        assert.match(stderr, ONE_LINE)
        assert.match(stderr, message)
      }
    })
  }

  test('a read-only folder', async (t) => {
    const folder = join(cli.folder, 'read-only')
    mkdirSync(folder)
    let code: number | null
    let stderr: string
    if (isRoot) {
      // Permissions mean nothing to root; a read-only mount does.
      const line = `mount --bind "${folder}" "${folder}" && mount -o remount,ro,bind "${folder}" && exec "${process.execPath}" ${MAIN} run --store "sqlite:${folder}/k.db" k -- true`
      if (spawnSync('unshare', ['-m', 'true']).status !== 0) return t.skip('no mount namespaces here')
      ;({ code, stderr } = await cli.spawn('unshare', ['-m', 'sh', '-c', line]).ended)
    } else {
      chmodSync(folder, 0o500)
      ;({ code, stderr } = await cli.run(['run', '--store', `sqlite:${folder}/k.db`, 'k', '--', 'true']))
    }
    assert.equal(code, 69, stderr)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /read-only|no permission/)
  })

  test('a state directory that cannot be made', async () => {
    const { code, stderr } = await cli.run(['run', 'k', '--', 'true'], {
      env: { XDG_STATE_HOME: file('in-the-way', '') },
    })
    assert.equal(code, 69)
    assert.match(stderr, /cannot make the folder .*give --store/)
  })
})

describe('which store', () => {
  test('a scheme without a store yet, several stores, an unknown scheme: 64, one line, no password', async () => {
    for (const [store, message] of [
      [['redis://user:secret@h/1'], /redis at h:6379: this version has no store for redis yet/],
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
    [['--ttl', '0s'], /--ttl must be/],
    [['--ttl', '10ms'], /--ttl 10ms is too short/],
    [['--ttl', '2s', '--grace', '1s'], /--grace 1s is too long for --ttl 2s: .* use a --grace of at most \d+ms/],
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

test('warnings of Node never reach stderr', async () => {
  const planted = 'data:text/javascript,setTimeout(()=>process.emitWarning(`planted`),150)'
  const { stderr, code } = await cli.run(['run', 'k', '--', 'sleep', '0.2'], {
    env: { NODE_OPTIONS: `--import=${planted}` },
  })
  assert.deepEqual([code, stderr], [0, ''])
})
