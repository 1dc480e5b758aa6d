/** Where the store could not be looked at, nobody is told that a key is free. */
import assert from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { bench, MAIN, ONE_LINE } from './support.js'

const cli = bench()
const isRoot = process.getuid?.() === 0
/** Any user but root, of no group. */
const NOBODY = ['--reuid', '65534', '--regid', '65534', '--clear-groups']

const asked = (store: string) => [
  ['ls', '--store', store],
  ['ls', '--json', '--store', store],
  ['show', '--store', store, 'k'],
  ['show', '--json', '--store', store, 'k'],
  ['revoke', '--store', store, 'k'],
  ['revoke', '--json', '--store', store, 'k'],
  ['revoke', '--force', '--yes', '--store', store, 'k'],
]

/** As somebody to whom permissions mean something. */
const run = (args: readonly string[]) =>
  isRoot ? cli.spawn('setpriv', [...NOBODY, process.execPath, MAIN, ...args]).ended : cli.run(args)

async function noVerdict(store: string, message: RegExp): Promise<void> {
  for (const args of asked(store)) {
    const { code, stdout, stderr } = await run(args)
    assert.deepEqual([code, stdout], [69, ''], `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /is free|nobody holds|nothing .*is held/)
  }
}

describe('no verdict: 69, whatever is asked', () => {
  test('a folder that may not be entered, with a held key in it', async () => {
    const folder = join(cli.folder, 'private')
    mkdirSync(folder)
    chmodSync(cli.folder, 0o755)
    const holder = cli.start(['run', '--store', `sqlite:${folder}/l.db`, 'k', '--', 'sh', '-c', 'echo up; cat'], {
      stdin: 'open',
    })
    await holder.saw(/up/)
    chmodSync(folder, isRoot ? 0o700 : 0o000)
    await noVerdict(`sqlite:${folder}/l.db`, /no permission/)
    await noVerdict(`sqlite:${folder}/none.db`, /no permission/)
    await noVerdict(`sqlite:${folder}/none/l.db`, /no permission/)
    chmodSync(folder, 0o700)
    holder.process.stdin?.end()
    assert.equal((await holder.ended).code, 0)
  })

  test('a file that may not be read', async () => {
    const path = join(cli.folder, 'unreadable.db')
    await cli.run(['run', '--store', `sqlite:${path}`, 'k', '--', 'true'])
    chmodSync(path, 0o000)
    await noVerdict(`sqlite:${path}`, /unreadable\.db/)
  })

  for (const [what, path] of [
    ['a name that is too long', () => join(cli.folder, 'x'.repeat(300))],
    ['a path that is too long', () => join(cli.folder, 'x/'.repeat(3_000), 'l.db')],
    ['a folder that is not there', () => join(cli.folder, 'no/such/l.db')],
    ['a folder in its place', () => cli.folder],
    ['a circle of links', () => link('circle', 'circle')],
    ['a part of the path is a file', () => join(plain('plain'), 'l.db')],
  ] as const) {
    test(what, () => noVerdict(`sqlite:${path()}`, /^holdfast: /))
  }
  function link(name: string, target: string): string {
    symlinkSync(target, join(cli.folder, name))
    return join(cli.folder, name)
  }
  function plain(name: string): string {
    writeFileSync(join(cli.folder, name), '')
    return join(cli.folder, name)
  }
})

test('a file that is not there, in a folder that can be read, holds nothing; and none is made', async () => {
  const folder = join(cli.folder, 'empty')
  mkdirSync(folder)
  if (isRoot) chownSync(folder, 65_534, 65_534)
  const store = `sqlite:${folder}/l.db`
  const answers = await Promise.all(asked(store).map(run))
  assert.deepEqual(
    answers.map(({ code, stdout }) => [code, stdout]),
    [
      [0, ''],
      [0, '[]\n'],
      [1, ''],
      [1, 'null\n'],
      [1, ''],
      [1, '{"key":"k","outcome":"absent"}\n'],
      [1, ''],
    ],
  )
  assert.equal(existsSync(join(folder, 'l.db')), false)
})
