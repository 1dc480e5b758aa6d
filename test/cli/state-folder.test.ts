/** Without `--store`: a private file in the user's state directory, made on the user's own ground only. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { bench, ONE_LINE } from './support.js'

const cli = bench()
const folder = (name: string): string => {
  const path = join(cli.folder, name)
  mkdirSync(path)
  return path
}

test('the default store: a private folder and file in the state directory', async () => {
  const [home, bare] = [folder('home'), folder('bare')]
  for (const [env, made] of [
    [{ HOME: home, XDG_STATE_HOME: '' }, join(home, '.local/state/holdfast')],
    [{ HOME: home, XDG_STATE_HOME: join(home, 'state') }, join(home, 'state/holdfast')],
    [{ HOME: home, XDG_STATE_HOME: `${home}/slash//` }, join(home, 'slash/holdfast')],
    [{ HOME: '/nonexistent', XDG_STATE_HOME: join(home, 'state') }, join(home, 'state/holdfast')],
    [{ HOME: bare, XDG_STATE_HOME: 'relative' }, join(bare, '.local/state/holdfast')],
  ] as const) {
    const { code, stderr } = await cli.run(['run', 'k', '--', 'true'], { env })
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(statSync(made).mode & 0o777, 0o700)
    assert.equal(statSync(join(made, 'leases.db')).mode & 0o777, 0o600)
  }
  assert.equal(existsSync('/nonexistent'), false)
})

test('many that are first at the same moment', async () => {
  const home = folder('together')
  const all = Array.from({ length: 5 }, () =>
    cli.run(['run', 'k', '--', 'true'], { env: { HOME: home, XDG_STATE_HOME: '' } }),
  )
  for (const { code, stderr } of await Promise.all(all)) assert.equal(code, 0, stderr)
})

describe('a folder that cannot be made: 69 at once, one line, nothing made, what to do', () => {
  const file = () => {
    const path = join(cli.folder, 'in-the-way')
    writeFileSync(path, '')
    return path
  }
  const cases: [string, () => NodeJS.ProcessEnv, RegExp][] = [
    ['HOME under /proc', () => ({ HOME: '/proc', XDG_STATE_HOME: '' }), /cannot make the folder \/proc\/\.local/],
    ['XDG_STATE_HOME under /proc', () => ({ XDG_STATE_HOME: '/proc/state' }), /cannot make the folder \/proc\/state/],
    [
      'HOME is not there',
      () => ({ HOME: join(cli.folder, 'no/home'), XDG_STATE_HOME: '' }),
      /the home folder, \S+no\/home, does not exist; make it, or/,
    ],
    [
      'the folder above XDG_STATE_HOME is not there',
      () => ({ XDG_STATE_HOME: join(cli.folder, 'no/such/state') }),
      /the folder above XDG_STATE_HOME, \S+no\/such, does not exist/,
    ],
    ['XDG_STATE_HOME is a file', () => ({ XDG_STATE_HOME: file() }), /cannot make the folder /],
    ['HOME is a file', () => ({ HOME: file(), XDG_STATE_HOME: '' }), /the home folder, \S+, is no folder/],
    ['HOME is below a file', () => ({ HOME: join(file(), 'x'), XDG_STATE_HOME: '' }), /does not exist/],
    ['HOME has a name that is too long', () => ({ HOME: `/${'x'.repeat(300)}`, XDG_STATE_HOME: '' }), /ENAMETOOLONG/],
  ]
  for (const [what, env, message] of cases) {
    test(what, async () => {
      const given = env()
      const before = readdirSync(cli.folder)
      for (const args of [['run', 'k', '--', 'true'], ['ls'], ['show', '--json', 'k'], ['revoke', 'k']]) {
        const { code, stdout, stderr, ms } = await cli.run(args, { env: given })
        assert.deepEqual([code, stdout], [69, ''], stderr)
        assert.match(stderr, ONE_LINE)
        assert.match(stderr, message)
        assert.match(stderr, /give --store sqlite:\/path/)
        assert.ok(ms < 10_000, `${ms} ms`)
      }
      assert.deepEqual(readdirSync(cli.folder), before)
    })
  }
})
