/** A server that came back without its memory grants nothing for a while: that is told at once, and everywhere. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { needsCommands, screen } from '../support/tmux.js'
import { bench, MAIN, ONE_LINE } from './support.js'

const cli = bench()
const RUN = ['run', '--ttl', '1s']
const WHY =
  /redis at \S+ is not ready to grant "k" for another \d+(?:\.\d)?s: it started \d+ s ago, .*appendonly no.*max-ttl (?:10s|20s).*--trust-restart/

describe('a server that was restarted without its data', withRedis, () => {
  let server: RedisServer
  const env = (maxTtl: string) => ({ HOLDFAST_STORE: `${server.url()}?max-ttl=${maxTtl}` })
  before(async () => {
    server = await redisServer()
    // It had leases in its life before.
    const { code, stderr } = await cli.run([...RUN, '--trust-restart', '--quiet', 'k', '--', 'true'], {
      env: env('10s'),
    })
    assert.equal(code, 0, stderr)
  })
  after(() => server.end())
  const restart = async () => {
    await server.kill()
    await server.start({ empty: true })
  }

  test('run says at once how long, why and what else could be done, then waits and gets the key', async () => {
    await restart()
    const restartedAt = performance.now()
    const waiter = cli.start([...RUN, '--json-log', 'log', '--metrics-file', 'm.prom', 'k', '--', 'echo', 'ran'], {
      env: env('2s'),
    })
    await waiter.saw(/is not ready to grant "k" for another [12]\.?\d?s: .*; waiting\n/)
    const toldAfter = performance.now() - restartedAt
    const { code, stdout, stderr } = await waiter.ended
    const ranAfter = performance.now() - restartedAt
    assert.deepEqual([code, stdout], [0, 'ran\n'])
    assert.match(stderr, /\nholdfast: got "k" after [23]\.\d*s\n$|\nholdfast: got "k" after [23]s\n$/)
    assert.equal(stderr.match(/\n/g)?.length, 2, stderr)
    assert.ok(toldAfter < 2_000 && ranAfter > 2_000 && ranAfter < 5_000, `${toldAfter} ${ranAfter}`)
    const [first] = readFileSync(join(cli.folder, 'log'), 'utf8').split('\n')
    const { event, because, retryAfterMs } = JSON.parse(first ?? '') as Record<string, unknown>
    assert.deepEqual([event, because], ['waiting', 'not-ready'])
    assert.ok(Number(retryAfterMs) > 500 && Number(retryAfterMs) <= 3_000, `${retryAfterMs}`)
    const metrics = readFileSync(join(cli.folder, 'm.prom'), 'utf8')
    const asked = /^holdfast_acquire_attempts_total\{[^}]*outcome="not-ready"[^}]*\} (\d+)$/m.exec(metrics)?.[1]
    assert.ok(Number(asked) > 0, metrics)
    assert.match(metrics, /^holdfast_last_run_wait_seconds\{[^}]*\} [23]/m)
  })

  test('-n, and the end of a wait: 75 with the reason, under --quiet too, and not passed over by -E 0', async () => {
    await restart()
    for (const [options, code] of [
      [['-n'], 75],
      [['-n', '--quiet'], 75],
      [['--wait', '300ms', '--quiet'], 75],
      [['-n', '--quiet', '-E', '0'], 0],
    ] as const) {
      const result = await cli.run([...RUN, ...options, '--json-log', 'short', 'k', '--', 'touch', 'ran'], {
        env: env('10s'),
      })
      assert.equal(result.code, code, result.stderr)
      assert.match(result.stderr, ONE_LINE)
      assert.match(result.stderr, /is not ready to grant "k": it started .*ask again in \d+(\.\d)?s/)
      const last = readFileSync(join(cli.folder, 'short'), 'utf8').trim().split('\n').at(-1) ?? ''
      assert.equal((JSON.parse(last) as { outcome: string }).outcome, 'not-ready')
    }
    const quiet = cli.start([...RUN, '--wait', '1s', 'k', '--', 'true'], { env: env('10s') })
    const { stderr } = await quiet.ended
    assert.match(stderr, WHY)
    assert.match(stderr, /; waiting up to 1s\n/)
  })

  test('--trust-restart does not wait, and says what that costs', async () => {
    await restart()
    const args = [...RUN, '-n', '--trust-restart', 'k', '--', 'echo', 'ran']
    const { code, stdout, stderr } = await cli.run(args, { env: env('10s') })
    assert.deepEqual([code, stdout], [0, 'ran\n'])
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /--trust-restart: if the server lost its leases in a restart, .*two may hold one key/)
    // It is of this run alone: the next one is careful again.
    assert.equal((await cli.run([...RUN, '-n', 'k', '--', 'true'], { env: env('10s') })).code, 75)
  })

  test('on a terminal a line tells how much longer', needsCommands('tmux'), async () => {
    await restart()
    const command = `HOLDFAST_STORE='${env('20s').HOLDFAST_STORE}' '${process.execPath}' '${MAIN}' ${RUN.join(' ')} k -- true`
    const terminal = screen(cli, 'restart', `${command}; cat`, { columns: 200, rows: 24 })
    await terminal.sees(WHY)
    await terminal.sees(/^holdfast: waiting [2-9]s for "k": the store is not ready, 1\ds to go$/m)
    terminal.press('C-c')
    await terminal.sees(/SIGINT ended the wait for "k" after /)
  })

  test('restarted while a command runs: its lease is lost, and the command killed before another can have the key', async () => {
    await server.kill()
    await server.start({ empty: true })
    const trusting = [...RUN, '--trust-restart', '--quiet', 'k', '--', 'sh', '-c', 'echo up; sleep 300']
    const holder = cli.start(trusting, { env: env('2s') })
    await holder.saw(/up/)
    await restart()
    const restartedAt = performance.now()
    const waiter = cli.start([...RUN, 'k', '--', 'true'], { env: env('2s') })
    const lost = await holder.ended
    const lostAfter = performance.now() - restartedAt
    const next = await waiter.ended
    assert.equal(lost.code, 76, lost.stderr)
    assert.equal(next.code, 0, next.stderr)
    assert.ok(lostAfter < 2_000, `${lostAfter} ms`)
    assert.ok(performance.now() - restartedAt > 2_000)
  })
})
