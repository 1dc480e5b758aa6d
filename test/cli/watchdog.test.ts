/** A command never outlives its lease, whatever becomes of holdfast. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { companions, failingLocks, judge, LOSSES, type Loss, round } from '../support/run-losses.js'
import { alive, bench, eventually, FAMILY, pidsIn } from './support.js'

const cli = bench()

/** What holdfast itself ends with. */
const CODES: Record<Loss, number | null> = {
  hang: null,
  error: 76,
  revoke: 76,
  stop: 76,
  kill: null,
  watchdog: null,
  both: null,
  sentinel: null,
  all: null,
}

describe('B208, B210: the whole family is dead before the next command starts', () => {
  for (const [loss, what] of Object.entries(LOSSES) as [Loss, string][]) {
    if (loss === 'all') continue
    test(what, async () => {
      const seen = await round(cli, loss, '1s', 50)
      judge(loss, seen)
      assert.equal(seen.code, CODES[loss], seen.stderr)
    })
  }

  test('control: with all three gone nobody ends the command, and the judge notices', async () => {
    const seen = await round(cli, 'all', '1s', 50)
    assert.throws(() => judge('all', seen), /command.+still ran/)
  })
})

for (const [ttl, ms] of [
  ['3s', 1_000],
  ['2s', 667],
] as const) {
  test(`--ttl ${ttl}: one heartbeat that is answered after a third of it kills nobody`, async () => {
    const fault = join(cli.folder, `slow-${ms}`)
    const env = { LD_PRELOAD: failingLocks(cli), FAILING_LOCKS: fault }
    const script = `echo up; sleep ${(ms * 4) / 1_000}; echo done`
    const runner = cli.start(['run', '--ttl', ttl, `slow ${ms}`, '--', 'sh', '-c', script], { env })
    await runner.saw(/up/)
    // After the renewal that tells the store of the command.
    await delay(300)
    writeFileSync(fault, `slow ${ms}`)
    const { code, stdout, stderr } = await runner.ended
    assert.ok(!existsSync(fault), 'the control: it was slow')
    assert.deepEqual([code, stdout], [0, 'up\ndone\n'], stderr)
    assert.doesNotMatch(stderr, /TERM|KILL/)
  })
}

/** Looks at the flags of its stderr without a pause, and says at its end how often it did not block. */
const SAMPLER = `
import fcntl, os, time
seen = looks = 0
print('up', flush=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    looks += 1
    if fcntl.fcntl(2, fcntl.F_GETFL) & os.O_NONBLOCK:
        seen += 1
print('not blocking in', seen, 'of', looks, 'looks', flush=True)
`

test('the death of a companion leaves the stderr of the command as it is', async () => {
  const runner = cli.start(['run', 'sampled', '--', 'python3', '-c', SAMPLER])
  await runner.saw(/up/)
  for (const name of ['watchdog', 'sentinel', 'watchdog'] as const) {
    await eventually('it is there', () => companions(runner.pid)[name] > 0)
    process.kill(companions(runner.pid)[name], 'SIGKILL')
  }
  assert.match((await runner.ended).stdout, /not blocking in 0 of \d{3,} looks/)
})

test('a watchdog that is stopped is replaced', async () => {
  const runner = cli.start(['run', '--ttl', '1s', 'stopped', '--', 'sh', '-c', FAMILY])
  await eventually('both are there', () => companions(runner.pid).watchdog > 0 && pidsIn(runner.stdout()).length === 4)
  const first = companions(runner.pid).watchdog
  process.kill(first, 'SIGSTOP')
  await eventually('another is there', () => !alive(first) && companions(runner.pid).watchdog > 0, 20_000)
  runner.process.kill('SIGKILL')
  await eventually('all of it is dead', () => !pidsIn(runner.stdout()).some(alive))
  await runner.ended
})

test('the watchdog has its own say, on stderr, and not of whoever ended well', async () => {
  const { stderr } = await cli.run(['run', 'quiet', '--', 'sleep', '0.3'])
  assert.equal(stderr, '')
  const runner = cli.start(['run', 'killed', '--', 'sh', '-c', FAMILY])
  await eventually('the family is there', () => pidsIn(runner.stdout()).length === 4)
  await eventually('so is the watchdog', () => companions(runner.pid).watchdog > 0)
  runner.process.kill('SIGKILL')
  assert.match(
    (await runner.ended).stderr,
    /^holdfast: holdfast \(pid \d+\) is gone: KILL was sent to its command[^\n]+\n$/,
  )
})
