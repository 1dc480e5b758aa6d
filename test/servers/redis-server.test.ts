/** The servers and clients that other tests rely on do what those tests think they do. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after, before, describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import {
  type RedisServer,
  type RedisServerOptions,
  redisServer,
  withRedis,
  withRedisClock,
  withRedisTls,
} from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const HOUR_MS = 3_600_000

async function using(options: RedisServerOptions, use: (server: RedisServer) => Promise<void>): Promise<void> {
  const server = await redisServer(options)
  try {
    await use(server)
  } finally {
    await server.end()
  }
}

test('starts, answers every kind of reply, and leaves nothing behind', withRedis, async () => {
  let left = ''
  await using({}, async (server) => {
    left = server.folder
    assert.equal(await server.send('SET', 'ключ', 'a\r\nb'), 'OK')
    assert.equal(await server.send('GET', 'ключ'), 'a\r\nb')
    assert.equal(await server.send('GET', 'nothing'), null)
    assert.equal(await server.send('INCR', 'n'), 1)
    assert.deepEqual(await server.send('EVAL', 'return {1, "two", {3, false}}', 0), [1, 'two', [3, null]])
    await assert.rejects(server.send('INCR', 'ключ'), /not an integer/)
    assert.ok(existsSync(left))
  })
  assert.ok(!existsSync(left))
})

test('paused: a command has no answer, and has one when it goes on', withRedis, async () => {
  await using({}, async (server) => {
    const wire = await server.connection({ timeoutMs: 200 })
    server.pause()
    await assert.rejects(wire.send('PING'), /no answer to PING within 200 ms/)
    const patient = await server.connection()
    const answer = patient.send('PING')
    server.resume()
    assert.equal(await answer, 'PONG')
    patient.close()
  })
})

test('killed and started: with its data, without it, and after a stop', withRedis, async () => {
  await using({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }, async (server) => {
    await server.send('SET', 'k', 'v')
    const { pid, port } = server
    await server.kill()
    await assert.rejects(server.send('PING'), /ECONNREFUSED/)
    assert.equal(server.pid, 0)
    await server.start()
    assert.notEqual(server.pid, pid)
    assert.deepEqual([server.port, await server.send('GET', 'k')], [port, 'v'])
    server.pause()
    await server.stop()
    await server.start()
    assert.equal(await server.send('GET', 'k'), 'v')
    await server.kill()
    await server.start({ empty: true })
    assert.equal(await server.send('GET', 'k'), null)
    await server.kill()
    await server.start({ args: [] })
    assert.deepEqual(await server.send('CONFIG', 'GET', 'appendonly'), ['appendonly', 'no'])
  })
})

test('its wall clock can be stepped by an hour either way, and keeps that over a restart', withRedisClock, async () => {
  await using({ clock: true }, async (server) => {
    const aheadMs = async () => {
      const [seconds, micros] = (await server.send('TIME')) as [string, string]
      return Number(seconds) * 1000 + Number(micros) / 1000 - Date.now()
    }
    const assertAhead = async (ms: number) => {
      const seen = await aheadMs()
      assert.ok(Math.abs(seen - ms) < 1000, `${seen} ms ahead, not ${ms}`)
    }
    await assertAhead(0)
    await server.send('SET', 'k', 'v', 'PX', 60_000)
    server.stepClock(-HOUR_MS)
    await assertAhead(-HOUR_MS)
    assert.ok(Number(await server.send('PTTL', 'k')) > HOUR_MS)
    server.stepClock(2 * HOUR_MS)
    await assertAhead(HOUR_MS)
    assert.equal(await server.send('GET', 'k'), null)
    await server.kill()
    await server.start()
    await assertAhead(HOUR_MS)
  })
})

test('a user with few rights', withRedis, async () => {
  await using({ args: ['--user', 'few', 'on', '>pw', '~app:*', '+get', '+ping'] }, async (server) => {
    const wire = await server.connection({ username: 'few', password: 'pw' })
    assert.equal(await wire.send('GET', 'app:x'), null)
    await assert.rejects(wire.send('SET', 'app:x', '1'), /NOPERM/)
    await assert.rejects(wire.send('GET', 'other'), /NOPERM/)
    wire.close()
    await assert.rejects(server.connection({ username: 'few', password: 'wrong' }), /WRONGPASS/)
  })
})

test('it does not outlive the process of its test, however that ends', withRedis, async () => {
  const module = pathToFileURL(new URL('../support/servers/redis.js', import.meta.url).pathname)
  const code = `
    const { redisServer } = await import(${JSON.stringify(module)})
    const server = await redisServer()
    console.log(server.pid)
    process.kill(process.pid, 'SIGKILL')`
  // What a killed process leaves behind is removed with this folder.
  const TMPDIR = mkdtempSync(join(tmpdir(), 'holdfast-outlive-'))
  const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { ...process.env, TMPDIR },
  })
  rmSync(TMPDIR, { recursive: true })
  assert.equal(signal, 'SIGKILL')
  const pid = Number(stdout)
  assert.ok(pid > 0)
  const until = performance.now() + 5000
  while (existsSync(`/proc/${pid}`) && performance.now() < until);
  assert.ok(!existsSync(`/proc/${pid}`), `${pid} is still there`)
})

describe('each client library', withRedisTls, () => {
  let server: RedisServer
  before(async () => {
    server = await redisServer({ tls: true, password: 'se cret' })
  })
  after(() => server.end())

  for (const { name, open, close } of CLIENTS) {
    test(`${name}: plainly, on a database, and by TLS; and it can be closed in any state`, async () => {
      const plain = { port: server.port }
      const tls = { port: server.tlsPort ?? 0, host: 'localhost', tls: { ca: server.ca ?? '' } }
      for (const way of [plain, { ...plain, database: 3 }, tls]) {
        const client = await open({ ...way, password: 'se cret' })
        close(client)
        close(client)
      }
      close(await open({ ...plain, password: 'wrong', connect: false }))
    })
  }

  test('the raw connection speaks TLS too, to whom it is told to trust', async () => {
    const port = server.tlsPort ?? 0
    const wire = await server.connection({ port, ca: server.ca ?? '' })
    assert.equal(await wire.send('PING'), 'PONG')
    wire.close()
    await assert.rejects(server.connection({ port, ca: '' }), /certificate/)
  })
})
