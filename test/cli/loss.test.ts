/** A command never outlives its lease: every way to lose one, with real trees of processes. */
import assert from 'node:assert/strict'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { alive, bench, eventually, FAMILY, lastTick, MAIN, ONE_LINE, pidsIn, ticker } from './support.js'

const cli = bench()

/** Starts a run whose command has four processes, and waits until all of them are there. */
async function family(key: string, ...options: string[]) {
  const runner = cli.start(['run', ...options, key, '--', 'sh', '-c', FAMILY])
  await eventually('the family is there', () => pidsIn(runner.stdout()).length === 4)
  return { runner, pids: pidsIn(runner.stdout()) }
}
const gone = (pids: readonly number[]) => assert.deepEqual(pids.filter(alive), [])

describe('revoke from another terminal', () => {
  test('the whole tree is gone, exit 76, and the key is free', async () => {
    const { runner, pids } = await family('revoked', '--ttl', '2s')
    const revoke = await cli.run(['revoke', 'revoked'])
    assert.equal(revoke.code, 0)
    assert.match(revoke.stderr, /asked for "revoked" back/)
    const { code, stderr } = await runner.ended
    gone(pids)
    assert.equal(code, 76)
    assert.match(stderr, /it was revoked; the command was ended by SIGTERM; exit 76: somebody asked for it back/)
    assert.equal((await cli.run(['show', 'revoked'])).code, 1)
  })

  test('TERM comes first; who ignores it is killed after the grace', async () => {
    const file = join(cli.folder, 'grace')
    const runner = cli.start(['run', '--ttl', '5s', '--grace', '600ms', 'grace', '--', 'sh', '-c', ticker(file)])
    await runner.saw(/pid/)
    await cli.run(['revoke', 'grace'])
    await runner.saw(/TERM was sent/)
    const told = Date.now()
    assert.equal((await runner.ended).code, 76)
    const wentOn = lastTick(file) - told
    assert.ok(wentOn > 400 && wentOn < 900, `${wentOn} ms after TERM`)
    gone(pidsIn(runner.stdout()))
  })

  test("by force: KILL at once, for the key may be another's already", async () => {
    const file = join(cli.folder, 'force')
    const runner = cli.start(['run', '--ttl', '3s', 'force', '--', 'sh', '-c', ticker(file)])
    await runner.saw(/pid/)
    assert.equal((await cli.run(['revoke', '--force', '--yes', 'force'])).code, 0)
    assert.equal((await cli.run(['run', '-n', 'force', '--', 'true'])).code, 0, 'free at once')
    const { code, stderr } = await runner.ended
    assert.equal(code, 76)
    assert.doesNotMatch(stderr, /TERM was sent/)
    assert.match(stderr, /exit 76: an operator may have freed it by force/)
    gone(pidsIn(runner.stdout()))
  })
})

test('B219: the key is deleted under a run: killed at once, exit 76, no stack trace', async () => {
  const { runner, pids } = await family('deleted', '--ttl', '1s')
  cli.sql("DELETE FROM holdfast_leases WHERE name = 'deleted'")
  const { code, stderr } = await runner.ended
  gone(pids)
  assert.equal(code, 76)
  assert.match(
    stderr,
    /^holdfast: KILL was sent[^\n]+\nholdfast: lost the lease on "deleted" [^\n]+no longer has it[^\n]+exit 76: an operator may have freed it by force, or somebody deleted[^\n]+\n$/,
  )
})

test('the lease file is moved away under a run: killed at once, exit 76', async () => {
  const { runner, pids } = await family('moved', '--ttl', '1s')
  const folder = join(cli.folder, 'holdfast')
  renameSync(folder, `${folder}.away`)
  const { code, stderr } = await runner.ended
  renameSync(`${folder}.away`, folder)
  gone(pids)
  assert.equal(code, 76)
  assert.match(stderr, /lost the lease on "moved"/)
})

describe('B208: no renewal gets through', () => {
  test('TERM, then KILL, all in time: dead before the TTL after the last renewal, and before the next one starts', async () => {
    const file = join(cli.folder, 'cut-off')
    const runner = cli.start(['run', '--ttl', '2s', 'cut', '--', 'sh', '-c', ticker(file)])
    await runner.saw(/pid/)
    const next = cli.start(['run', 'cut', '--', 'sh', '-c', 'echo $(($(date +%s%N) / 1000000))'])
    await next.saw(/waiting/)
    const unlock = cli.lockFile()
    const lockedAt = Date.now()
    await runner.saw(
      /TERM was sent to the command, KILL follows in 4\d\dms|TERM was sent to the command, KILL follows in 3\d\dms/,
    )
    const { code, stderr } = await runner.ended
    unlock()
    const died = lastTick(file)
    assert.equal(code, 76)
    assert.match(stderr, /could not renew the lease on "cut" \(.+\); trying again for/)
    assert.match(
      stderr,
      /(could not be renewed in time|its deadline passed without a renewal).+locked by another process.+; the command was ended by SIGKILL; exit 76: look at the store/,
    )
    assert.ok(died < lockedAt + 2_000, `died ${died - lockedAt} ms after the last possible renewal`)
    const started = Number((await next.ended).stdout)
    assert.ok(started > died, `the next one started ${started - died} ms after the death`)
  })

  test('the whole tree is dead, grandchildren in sessions of their own too', async () => {
    const { runner, pids } = await family('cut-family', '--ttl', '1s', '--grace', '0s')
    const unlock = cli.lockFile()
    const { code } = await runner.ended
    unlock()
    gone(pids)
    assert.equal(code, 76)
  })

  test('a stop of the store that is shorter than the deadline harms nobody', async () => {
    const runner = cli.start(['run', '--ttl', '2s', 'hiccup', '--', 'sh', '-c', 'echo up; sleep 2.5'])
    await runner.saw(/up/)
    const unlock = cli.lockFile()
    await runner.saw(/could not renew/)
    unlock()
    const { code, stderr } = await runner.ended
    assert.equal(code, 0, stderr)
    assert.match(
      stderr,
      /^holdfast: could not renew[^\n]+\nholdfast: renewed the lease on "hiccup": all is well again\n$/,
    )
  })

  test('a reader of stderr that stalls holds nothing up', async () => {
    const file = join(cli.folder, 'stalled')
    // The pipe is full of the command's own output; nobody reads it.
    const line = `"$NODE" "$MAIN" run --ttl 1s stalled -- sh -c 'yes >&2 & ${ticker(file).replaceAll("'", "'\\''")}' 2>&1 >/dev/null | sleep 8`
    const env = { NODE: process.execPath, MAIN }
    const shell = cli.spawn('sh', ['-c', line], { env })
    await eventually('it runs', () => lastTick(file) > 0)
    const unlock = cli.lockFile()
    const lockedAt = Date.now()
    await delay(1_300)
    unlock()
    const died = lastTick(file)
    await delay(200)
    assert.equal(lastTick(file), died, 'it is dead')
    assert.ok(died < lockedAt + 1_000, `died ${died - lockedAt} ms after the last possible renewal`)
    shell.process.kill('SIGKILL')
  })
})

test('B208: holdfast is stopped past the TTL: when it goes on, the first thing is KILL; exit 76', async () => {
  const file = join(cli.folder, 'paused')
  const runner = cli.start(['run', '--ttl', '1s', 'paused', '--', 'sh', '-c', ticker(file)])
  await runner.saw(/pid/)
  runner.process.kill('SIGSTOP')
  await delay(1_500)
  const resumed = Date.now()
  runner.process.kill('SIGCONT')
  const { code, stderr } = await runner.ended
  assert.equal(code, 76)
  assert.match(stderr, /noticed (\d+ms|[\d.]+s) late: this process was blocked or paused/)
  const wentOn = lastTick(file) - resumed
  assert.ok(wentOn < 150, `${wentOn} ms after CONT`)
  gone(pidsIn(runner.stdout()))
})

test('a command that ended well while its lease was lost unnoticed is no success', async () => {
  const runner = cli.start(['run', '--ttl', '1s', 'unnoticed', '--', 'sh', '-c', 'echo up; sleep 0.4'])
  await runner.saw(/up/)
  runner.process.kill('SIGSTOP')
  await delay(1_300)
  runner.process.kill('SIGCONT')
  const { code, stderr } = await runner.ended
  assert.equal(code, 76, stderr)
  assert.match(stderr, /the command ended with 0; exit 76/)
})

describe('B031: holdfast itself is ended', () => {
  test('TERM: the command ends, and the key is free at once', async () => {
    const { runner, pids } = await family('term', '--ttl', '60s')
    runner.process.kill('SIGTERM')
    assert.equal(await runner.exited, 143)
    const next = await cli.run(['run', '-n', 'term', '--', 'true'])
    assert.equal(next.code, 0)
    const left = pids.filter(alive)
    assert.deepEqual(left, pids.slice(2), 'only who has left the process group is still there')
    for (const pid of left)
      assert.match(runner.stderr(), new RegExp(`left behind, now without the lease: .*pid ${pid}\\)`))
    for (const pid of left) process.kill(pid, 'SIGKILL')
  })

  test('KILL: the key is free after one TTL; renewals, not a long TTL, carry a long job', async () => {
    const { runner, pids } = await family('kill', '--ttl', '1s')
    runner.process.kill('SIGKILL')
    assert.equal(await runner.exited, null)
    const next = await cli.run(['run', '--wait', '5s', 'kill', '--', 'true'])
    assert.equal(next.code, 0)
    assert.ok(next.ms < 4_000, `${next.ms} ms`)
    for (const pid of pids) if (alive(pid)) process.kill(pid, 'SIGKILL')
    await runner.ended
  })

  test('a fault of its own: the tree is killed, one line, exit 70', async () => {
    const planted = 'data:text/javascript,setTimeout(()=>{throw(Error(`planted`))},500)'
    const runner = cli.start(['run', '--ttl', '1s', 'fault', '--', 'sh', '-c', FAMILY], {
      env: { NODE_OPTIONS: `--import=${planted}` },
    })
    const { code, stderr, stdout } = await runner.ended
    assert.equal(code, 70)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /^holdfast: unexpected: planted; please report it, with what HOLDFAST_DEBUG=1 prints\n$/)
    assert.equal(pidsIn(stdout).length, 4)
    gone(pidsIn(stdout))
  })
})

test("B218: the command's code stands when the release gets no answer; a line says what may linger", async () => {
  const runner = cli.start(['run', '--ttl', '3s', 'release', '--', 'sh', '-c', 'echo up; sleep 0.3; exit 5'])
  await runner.saw(/up/)
  const unlock = cli.lockFile()
  const { code, stderr } = await runner.ended
  unlock()
  assert.equal(code, 5)
  assert.match(stderr, /no answer to the release of "release": it may stay taken for up to 3s/)
})

test("B213: the command is not run through a shell, and a shell's children are reached", async () => {
  const { runner, pids } = await family('shell', '--ttl', '1s')
  const line = readFileSync(`/proc/${pids[0]}/cmdline`, 'utf8').split('\0')
  assert.deepEqual(line.slice(0, 2), ['sh', '-c'])
  const parent = readFileSync(`/proc/${pids[0]}/stat`, 'utf8').split(' ')[3]
  assert.equal(Number(parent), runner.pid, 'no shell of ours in between')
  cli.sql("DELETE FROM holdfast_leases WHERE name = 'shell'")
  await runner.ended
  gone(pids)
})

test('the folder of the lease file is removed under a run', async () => {
  const db = join(cli.folder, 'other.db')
  const runner = cli.start(['run', '--store', `sqlite:${db}`, '--ttl', '1s', 'k', '--', 'sh', '-c', FAMILY])
  await eventually('the family is there', () => pidsIn(runner.stdout()).length === 4)
  for (const suffix of ['', '-wal', '-shm']) rmSync(db + suffix, { force: true })
  const { code } = await runner.ended
  assert.equal(code, 76)
  gone(pidsIn(runner.stdout()))
})
