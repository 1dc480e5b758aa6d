/** Which client library the command loads, from where, and that it keeps quiet. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type RedisServer, redisServer, withRedisTls } from '../support/servers/redis.js'
import { bench, MAIN, ONE_LINE } from './support.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const cli = bench()
const TRUSTING = ['run', '--trust-restart', '--quiet']

/** Holdfast installed in a folder of its own, beside packages of this repository under other names. */
function installed(name: string, packages: Readonly<Record<string, string>>): string {
  const modules = join(cli.folder, name, 'node_modules')
  const home = join(modules, 'holdfast')
  mkdirSync(home, { recursive: true })
  cpSync(join(root, 'package.json'), join(home, 'package.json'))
  cpSync(dirname(MAIN), join(home, 'dist/bundle/cli'), { recursive: true })
  for (const [as, source] of Object.entries(packages))
    symlinkSync(join(root, 'node_modules', source), join(modules, as))
  return join(home, 'dist/bundle/cli/main.js')
}

/** Packages of others that a run loaded, by their real folders. */
const watcher = join(cli.folder, 'watcher.cjs')
writeFileSync(
  watcher,
  `process.on('exit', () => {
    const names = Object.keys(require.cache).flatMap((file) => file.split('/node_modules/')[1]?.split('/')[0] ?? [])
    require('node:fs').writeFileSync(process.env.LOADED, [...new Set(names)].join(' '))
  })`,
)
const loadedBy = async (main: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string[]> => {
  const LOADED = join(cli.folder, 'loaded')
  rmSync(LOADED, { force: true })
  const watched = { ...env, LOADED }
  const { code, stderr } = await cli.spawn(process.execPath, ['--require', watcher, main, ...args], { env: watched })
    .ended
  assert.deepEqual([code, stderr], [0, ''])
  return readFileSync(LOADED, 'utf8').split(' ')
}

describe('the client library', withRedisTls, () => {
  let server: RedisServer
  let strict: RedisServer
  let env: NodeJS.ProcessEnv
  before(async () => {
    server = await redisServer()
    env = { HOLDFAST_STORE: server.url() }
    // Wants a certificate of its clients, too: its own will do.
    strict = await redisServer({ tls: true, password: 'a@b', args: ['--tls-auth-clients', 'yes'] })
  })
  after(() => Promise.all([server.end(), strict.end()]))

  for (const [name, packages, expected] of [
    ['both', { ioredis: 'ioredis', redis: 'redis' }, 'ioredis'],
    ['ioredis-5', { ioredis: 'ioredis-5' }, 'ioredis-5'],
    ['redis-4', { redis: 'redis-4' }, 'redis-4'],
    ['redis-5', { redis: 'redis-5' }, 'redis-5'],
    ['redis-6', { redis: 'redis' }, 'redis'],
  ] as const) {
    test(`${name}: ${expected} is loaded from beside holdfast, and no other, and no SQLite`, async () => {
      const loaded = await loadedBy(installed(name, packages), [...TRUSTING, 'k', '--', 'true'], env)
      assert.ok(loaded.includes(expected), loaded.join(' '))
      const others = ['ioredis', 'ioredis-5', 'redis', 'redis-4', 'redis-5', 'better-sqlite3'].filter(
        (each) => each !== expected,
      )
      assert.deepEqual(
        loaded.filter((each) => others.includes(each)),
        [],
      )
    })
  }

  for (const [name, packages] of [
    ['ioredis 5', { ioredis: 'ioredis-5' }],
    ['ioredis 6', { ioredis: 'ioredis' }],
    ['node-redis 4', { redis: 'redis-4' }],
    ['node-redis 5', { redis: 'redis-5' }],
    ['node-redis 6', { redis: 'redis' }],
  ] as const) {
    test(`${name}: TLS with a certificate of the client, a password, a database`, async () => {
      const main = installed(`tls-${name}`, packages)
      const files = dirname(strict.folder)
      const url = strict.url({ tls: true, database: 2 })
      const trusting = `${url}?ca=${files}/ca.crt`
      const certified = `${trusting}&cert=${files}/server.crt&key=${files}/server.key`
      const use = (store: string) =>
        cli.spawn(process.execPath, [main, ...TRUSTING, '-n', 'k', '--', 'echo', 'ran'], {
          env: { HOLDFAST_STORE: store },
        }).ended
      const { code, stdout, stderr } = await use(certified)
      assert.deepEqual([code, stdout, stderr], [0, 'ran\n', ''])
      for (const [store, message] of [
        [url, /self-signed certificate/],
        [trusting, /redis at localhost:/],
        [certified.replace('a%40b', 'wrong'), /WRONGPASS/],
      ] as const) {
        const refused = await use(store)
        assert.equal(refused.code, 69, refused.stderr)
        assert.match(refused.stderr, ONE_LINE)
        assert.match(refused.stderr, message)
      }
    })
  }

  test('a run on a file loads none', async () => {
    const main = installed('file', { ioredis: 'ioredis', redis: 'redis', 'better-sqlite3': 'better-sqlite3' })
    const loaded = await loadedBy(main, ['run', 'k', '--', 'true'], {})
    assert.deepEqual(
      loaded.filter((each) => /redis/.test(each)),
      [],
    )
  })

  test('none is there: 69, and what to install; the current folder is not searched', async () => {
    const main = installed('none', {})
    const here = join(cli.folder, 'current')
    for (const name of ['ioredis', 'redis']) {
      const folder = join(here, 'node_modules', name)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'package.json'), '{ "version": "9.9.9", "main": "main.js" }')
      writeFileSync(join(folder, 'main.js'), "require('node:fs').writeFileSync('ran', '')")
    }
    for (const args of [[...TRUSTING, 'k', '--', 'true'], ['ls'], ['show', 'k'], ['revoke', 'k']]) {
      const { code, stderr } = await cli.spawn(process.execPath, [main, ...args], { env, cwd: here }).ended
      assert.equal(code, 69, stderr)
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, /needs a client library beside holdfast, and there is none: npm install ioredis/)
    }
    assert.throws(() => readFileSync(join(here, 'ran')))
  })

  test('too old: named with its version, and passed over where another will do', async () => {
    const main = installed('old', {})
    const modules = join(dirname(main), '../../../..')
    mkdirSync(join(modules, 'ioredis'))
    writeFileSync(join(modules, 'ioredis/package.json'), '{ "version": "4.28.5" }')
    const { code, stderr } = await cli.spawn(process.execPath, [main, 'ls'], { env }).ended
    assert.equal(code, 69, stderr)
    assert.match(stderr, /there is none \(ioredis 4\.28\.5 is too old\): npm install ioredis/)
    symlinkSync(join(root, 'node_modules/redis'), join(modules, 'redis'))
    const second = await cli.spawn(process.execPath, [main, 'ls'], { env }).ended
    assert.deepEqual([second.code, second.stdout], [0, ''])
  })

  describe('keeps quiet while a command runs', () => {
    /** Says by itself that a password was not needed: `console.warn`, and with DEBUG every command that it sends. */
    const unneeded = () => ({ HOLDFAST_STORE: server.url({ password: 'unneeded' }), DEBUG: '*' })
    for (const library of ['ioredis', 'ioredis-5'] as const) {
      const packages = { ioredis: library }
      test(`${library}: a password that is not needed, DEBUG=*`, async () => {
        const main = installed(`quiet-${library}`, packages)
        for (const [args, output] of [
          [[...TRUSTING, 'k', '--', 'sh', '-c', 'echo "$DEBUG"'], '*\n'],
          [['ls', '--json'], '[]\n'],
        ] as const) {
          const { code, stdout, stderr } = await cli.spawn(process.execPath, [main, ...args], { env: unneeded() }).ended
          assert.deepEqual([code, stdout, stderr], [0, output, ''])
        }
      })

      test(`control: ${library} is not quiet by itself`, async () => {
        const script = `const { Redis } = require('${join(root, 'node_modules', library)}')
          const redis = new Redis(process.env.HOLDFAST_STORE)
          redis.on('error', () => {}).on('ready', () => process.exit(0))`
        const { stderr } = await cli.spawn(process.execPath, ['-e', script], { env: unneeded() }).ended
        assert.match(stderr, /unneeded/, 'DEBUG shows the password')
        // Of protocol 3, which the newer one speaks, no such thing is known.
        if (library === 'ioredis-5') assert.match(stderr, /does not require a password/)
      })
    }
  })
})
