/** `ls`, `show`, `revoke`, and the errors of the store as the command line shows them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
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
      /^key +job:a\nstate +held\nholder +one\nhost +this one \(\S+\)\nheld for +\S+\nsince +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+\nttl left +\S+\nfence +\d+\nstore +\S+leases\.db\nnext +to ask for it back: holdfast revoke job:a\n$/,
    )
    const json = JSON.parse((await cli.run(['show', '--json', 'job:a'])).stdout) as Record<string, unknown>
    assert.deepEqual([json.key, json.label, typeof json.fence, json.store], ['job:a', 'one', 'string', cli.db])
    const since = Date.parse(String(json.since))
    assert.ok(Math.abs(Date.now() - Number(json.heldForMs) - since) < 5_000, String(json.since))
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
})
