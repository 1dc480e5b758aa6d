/** The command on a real Redis server: the same commands, one store for many hosts. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createLeases } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'
import { type RedisServer, redisServer, withRedisTls } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'
import { alive, bench, eventually, MAIN, ONE_LINE, type Running } from './support.js'

const cli = bench()
const PASSWORD = 'geheim@1/2'
const SECRET = /geheim/
/** One number for the whole fleet; short, because a server that has just started grants nothing for so long. */
const MAX_TTL_MS = 1_000
const TTL = ['--ttl', '1s']

describe('redis://', withRedisTls, () => {
  let server: RedisServer
  let url: string
  let env: NodeJS.ProcessEnv
  before(async () => {
    server = await redisServer({ tls: true, password: PASSWORD })
    url = `${server.url()}?max-ttl=1s`
    env = { HOLDFAST_STORE: url }
    const ready = await cli.run(['run', ...TTL, '--wait', '10s', 'first', '--', 'true'], { env })
    assert.equal(ready.code, 0, ready.stderr)
  })
  after(() => server.end())

  const place = () => `redis at 127.0.0.1:${server.port}`
  const hold = async (key: string, ...options: string[]): Promise<Running> => {
    const command = ['--', 'sh', '-c', 'echo up; cat']
    const holder = cli.start(['run', ...TTL, ...options, key, ...command], { env, stdin: 'open' })
    await holder.saw(/up/)
    return holder
  }
  const letGo = async (holder: Running) => {
    holder.process.stdin?.end()
    assert.equal((await holder.ended).code, 0, holder.stderr())
  }

  test('run: the command has a fence that grows, and its own exit code', async () => {
    const command = ['--', 'sh', '-c', 'echo $HOLDFAST_KEY $HOLDFAST_FENCE; exit 7']
    const [one, two] = [
      await cli.run(['run', ...TTL, 'k', ...command], { env }),
      await cli.run(['run', ...TTL, 'k', ...command], { env }),
    ]
    assert.deepEqual([one.code, two.code, one.stderr, two.stderr], [7, 7, '', ''])
    const [before = 0n, then = 0n] = [one, two].map(({ stdout }) => BigInt(/^k (\d+)\n$/.exec(stdout)?.[1] ?? 0))
    assert.ok(before > 0n && then > before, `${before} ${then}`)
  })

  test('a second one waits for the first and is told who holds it; -n is 75', async () => {
    const first = await hold('busy', '--label', 'web-1')
    const refused = await cli.run(['run', ...TTL, '-n', 'busy', '--', 'true'], { env })
    assert.equal(refused.code, 75)
    assert.match(refused.stderr, ONE_LINE)
    assert.ok(refused.stderr.includes(`(asked ${place()})`), refused.stderr)
    const second = cli.start(['run', ...TTL, 'busy', '--', 'echo', 'ran'], { env })
    await second.saw(/"busy" is held by web-1 for .*; waiting/)
    await letGo(first)
    const { code, stdout, stderr } = await second.ended
    assert.deepEqual([code, stdout], [0, 'ran\n'])
    assert.match(stderr, /\nholdfast: got "busy" after /)
    assert.doesNotMatch(refused.stderr + stderr, SECRET)
  })

  test('ls, show, revoke; what they print names the server and no password', async () => {
    const holder = await hold('shown', '--label', 'web-2')
    const [ls, json, show, showJson, free] = [
      await cli.run(['ls'], { env }),
      await cli.run(['ls', '--json', 'sho'], { env }),
      await cli.run(['show', 'shown'], { env }),
      await cli.run(['show', '--json', 'shown'], { env }),
      await cli.run(['show', 'nobody'], { env }),
    ]
    assert.match(ls.stdout, /^shown +\d+ +held +web-2 /m)
    const [entry, ...others] = JSON.parse(json.stdout) as Record<string, unknown>[]
    assert.deepEqual([entry?.key, entry?.label, entry?.state, others], ['shown', 'web-2', 'held', []])
    assert.match(show.stdout, new RegExp(`^store +${place()}$`, 'm'))
    assert.equal((JSON.parse(showJson.stdout) as { store: string }).store, place())
    assert.equal(free.code, 1)
    assert.ok(free.stderr.includes(`"nobody" is free (asked ${place()})`), free.stderr)
    const revoked = await cli.run(['revoke', 'shown'], { env })
    assert.equal(revoked.code, 0)
    const { code, stderr } = await holder.ended
    assert.equal(code, 76)
    assert.match(stderr, /it was revoked/)
    for (const { stdout, stderr } of [ls, json, show, showJson, free, revoked, holder.stderr()].map(textOf))
      assert.doesNotMatch(stdout + stderr, SECRET)
  })

  test('revoke --force: the key is free at once, and its holder is killed', async () => {
    const holder = await hold('forced')
    const { code, stderr } = await cli.run(['revoke', '--force', '--yes', 'forced'], { env })
    assert.equal(code, 0, stderr)
    assert.equal((await cli.run(['run', ...TTL, '-n', 'forced', '--', 'true'], { env })).code, 0)
    assert.equal((await holder.ended).code, 76)
  })

  test('ls --json --watch: a line for each change', async () => {
    const lines = () => watch.stdout().split('\n').slice(0, -1)
    const watch = cli.start(['ls', '--json', '--watch', '--interval', '100ms', 'watched'], { env })
    await eventually('the first look', () => lines().length === 1)
    const holder = await hold('watched')
    await eventually('it is held', () => lines().length === 2)
    await letGo(holder)
    await eventually('it is free', () => lines().length === 3)
    const counts = lines().map((line) => (JSON.parse(line) as unknown[]).length)
    assert.deepEqual(counts, [0, 1, 0])
    watch.process.kill('SIGTERM')
    assert.deepEqual([(await watch.ended).code, watch.stderr()], [143, ''])
  })

  test('the command gets the whole URL in HOLDFAST_STORE, so that a nested holdfast asks the same store', async () => {
    // Given on the command line, with a prefix: the nested one can know of both only from its environment.
    const given = `${url}&prefix=nest`
    const nested = [
      'echo "$HOLDFAST_STORE" >url',
      `"$NODE" "$MAIN" ls`,
      `"$NODE" "$MAIN" run ${TTL.join(' ')} inner -- echo ran inside`,
      `"$NODE" "$MAIN" run ${TTL.join(' ')} -n outer -- true || echo "code $?"`,
      `"$NODE" "$MAIN" run inner -- true || echo "code $?"`,
    ].join('\n')
    const args = ['run', '--store', given, ...TTL, 'outer', '--', 'sh', '-c', `${nested}; cat url`]
    const { code, stdout, stderr } = await cli.run(args, { env: { NODE: process.execPath, MAIN } })
    assert.equal(code, 0, stderr)
    const [heads, row, ...rest] = stdout.split('\n')
    assert.match(heads ?? '', /^KEY /)
    assert.match(row ?? '', /^outer +\d+ +held /)
    // The default ttl is above max-ttl, which the nested one has from the URL: it is refused.
    assert.deepEqual(rest, ['ran inside', 'code 75', 'code 64', given, ''])
    assert.match(stderr, /--ttl must lie between .* and 1s on redis/)
    assert.doesNotMatch(stderr, SECRET)
  })

  test('--no-inherit-store: nothing of the URL reaches the command', async () => {
    const args = [
      'run',
      ...TTL,
      '--no-inherit-store',
      'k',
      '--',
      'sh',
      '-c',
      'env | grep -c geheim; echo $HOLDFAST_STORE',
    ]
    const { stdout } = await cli.run(args, { env })
    assert.equal(stdout, '0\nrefuse:\n')
  })

  test('two applications with different keyPrefix exclude each other, and the command sees what both hold', async () => {
    const library = CLIENTS.find(({ name }) => name === 'ioredis 6')
    assert.ok(library)
    const open = async (keyPrefix: string) => {
      const client = await library.open({ port: server.port, password: PASSWORD, also: { keyPrefix } })
      const leases = createLeases(redisStore(client, { maxTtlMs: MAX_TTL_MS }), { ttlMs: 1_000, label: keyPrefix })
      return {
        leases,
        close: async () => {
          await leases.close()
          library.close(client)
        },
      }
    }
    const [a, b] = [await open('a:'), await open('b:')]
    try {
      const one = await a.leases.acquire('one')
      const two = await b.leases.acquire('two')
      assert.equal(await b.leases.tryAcquire('one'), null)
      assert.equal(await a.leases.tryAcquire('two'), null)
      const { stdout } = await cli.run(['ls', '--json'], { env })
      const seen = (JSON.parse(stdout) as { key: string; label: string }[]).map(({ key, label }) => [key, label])
      assert.deepEqual(seen, [
        ['one', 'a:'],
        ['two', 'b:'],
      ])
      assert.equal((await cli.run(['run', ...TTL, '-n', 'one', '--', 'true'], { env })).code, 75)
      await Promise.all([one.release(), two.release()])
    } finally {
      await Promise.all([a.close(), b.close()])
    }
  })

  test('a database and a prefix of its own see nothing of the others', async () => {
    const holder = await hold('apart')
    const inDatabase = `${server.url({ database: 3 })}?max-ttl=1s`
    const other = await cli.run(['show', '--store', inDatabase, 'apart'])
    assert.equal(other.code, 1, other.stderr)
    assert.ok(other.stderr.includes(`(asked ${place()}, database 3)`), other.stderr)
    assert.equal((await cli.run(['show', '--store', `${url}&prefix=p`, 'apart'])).code, 1)
    // What is suggested can be typed as it stands, but for the password.
    assert.ok(other.stderr.includes(`--store 'redis://***@127.0.0.1:${server.port}/3?max-ttl=1s'`), other.stderr)
    await letGo(holder)
  })

  test('rediss:// with the authority that signed the server; without it no connection, and no password is sent', async () => {
    writeFileSync(join(cli.folder, 'ca.pem'), server.ca ?? '')
    const secure = `${server.url({ tls: true })}?max-ttl=1s`
    // A relative path, and a nested holdfast in another folder.
    const nested = `cd / && "$NODE" "$MAIN" run ${TTL.join(' ')} inner -- echo nested`
    const trusting = ['run', '--store', `${secure}&ca=ca.pem`, ...TTL, 'tls', '--', 'sh', '-c', nested]
    const { code, stdout, stderr } = await cli.run(trusting, { env: { NODE: process.execPath, MAIN } })
    assert.deepEqual([code, stdout, stderr], [0, 'nested\n', ''])
    const untrusted = await cli.run(['run', '--store', secure, ...TTL, 'tls', '--', 'true'])
    assert.equal(untrusted.code, 69)
    assert.match(untrusted.stderr, ONE_LINE)
    assert.match(untrusted.stderr, new RegExp(`redis at localhost:${server.tlsPort} .*certificate`))
    const unread = await cli.run(['ls', '--store', `${secure}&ca=no.pem`])
    assert.equal(unread.code, 64)
    assert.match(
      unread.stderr,
      /^holdfast: cannot read \S+no.pem \(ENOENT\), which the URL of the store names with ca=\n$/,
    )
    for (const { stderr } of [untrusted, unread]) assert.doesNotMatch(stderr, SECRET)
  })

  test('holdfast killed with -9: its watchdog ends the command at once, and the key is free when its ttl ends', async () => {
    const key = 'orphan'
    const holder = cli.start(['run', ...TTL, key, '--', 'sh', '-c', 'echo pid $$; exec sleep 300'], { env })
    const [, pid] = await holder.saw(/^pid (\d+)$/m)
    holder.process.kill('SIGKILL')
    await holder.exited
    const killedAt = performance.now()
    await eventually('the command is dead', () => !alive(Number(pid)), 1_000)
    const next = await cli.run(['run', ...TTL, key, '--', 'true'], { env })
    const freeAfter = performance.now() - killedAt
    assert.equal(next.code, 0, next.stderr)
    // Nobody can see a death on another host: the rest of the ttl passes. A start of Node is in this time.
    assert.ok(freeAfter > 500 && freeAfter < MAX_TTL_MS + 1_000, `${freeAfter} ms`)
  })
})

const textOf = (result: string | { readonly stdout: string; readonly stderr: string }) =>
  typeof result === 'string' ? { stdout: '', stderr: result } : result
