/** Processes that try to get away from the end of their lease: none is left unseen, none unnamed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { alive, bench, eventually, MAIN, pidsIn } from './support.js'

const cli = bench()
const CHAIN = join(cli.folder, 'chain.sh')
// Each generation leaves the group and the session, starts the next one, and ends: its parent is gone by then.
writeFileSync(CHAIN, '[ $1 -lt 5000 ] || exit\necho . >>$2\nsetsid sh "$0" $(($1 + 1)) $2 &\n')

describe('B213: a chain of processes, each of which ends as soon as it has started the next', () => {
  for (const [how, chains, revoke] of [
    ['by force', 1, ['--force', '--yes']],
    ['asked back', 1, []],
    ['several at once', 4, ['--force', '--yes']],
  ] as const) {
    test(how, async () => {
      const key = how.replaceAll(' ', '-')
      const files = Array.from({ length: chains }, (_, index) => join(cli.folder, `${key}.${index}`))
      const script = `${files.map((file) => `sh ${CHAIN} 0 ${file}`).join('\n')}\nsleep 300`
      const runner = cli.start(['run', '--ttl', '2s', key, '--', 'sh', '-c', script])
      const length = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
      await eventually('the chains go on', () => files.every((file) => length(file) > 20))
      assert.equal((await cli.run(['revoke', ...revoke, key])).code, 0)
      assert.equal(await runner.exited, 76)
      const lengths = files.map(length)
      await delay(300)
      assert.deepEqual(files.map(length), lengths, `they went on: ${runner.stderr()}`)
      assert.ok(
        lengths.every((each) => each < 10_000),
        'they did not end by themselves',
      )
      assert.doesNotMatch(runner.stderr(), /could not end/)
    })
  }
})

test('what cannot be ended is named with its pid, and not waited for', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('needs root, to make a process that its starter may not kill')
  const folder = join(cli.folder, 'nobody')
  mkdirSync(folder)
  chmodSync(cli.folder, 0o755)
  chownSync(folder, 65_534, 65_534)
  // Becomes root for good, out of the reach of the user who runs it.
  const rise = join(folder, 'rise')
  copyFileSync(spawnSync('sh', ['-c', 'command -v setpriv'], { encoding: 'utf8' }).stdout.trim(), rise)
  chmodSync(rise, 0o4755)
  const nobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups']
  const holdfast = ['setpriv', ...nobody, process.execPath, MAIN]
  const script = 'echo pid $$; exec sleep 300'
  const store = `sqlite:${folder}/l.db`
  const command = [rise, '--reuid', '0', 'sh', '-c', script]
  const runner = cli.spawn('/usr/bin/env', [...holdfast, 'run', '--ttl', '1s', '--store', store, 'k', '--', ...command])
  await runner.saw(/pid/)
  const [pid = 0] = pidsIn(runner.stdout())
  if (spawnSync('setpriv', [...nobody, 'kill', '-0', String(pid)]).status === 0) {
    process.kill(pid, 'SIGKILL')
    return t.skip('set-user-ID programs mean nothing on this file system')
  }
  assert.equal((await cli.run(['revoke', '--force', '--yes', '--store', store, 'k'])).code, 0)
  assert.equal(await runner.exited, 76)
  assert.ok(alive(pid), 'nobody else ended it')
  assert.match(runner.stderr(), new RegExp(`could not end [^\\n]*\\(pid ${pid}\\), now without the lease`))
  assert.doesNotMatch(runner.stderr(), /everything/)
  process.kill(pid, 'SIGKILL')
  await runner.ended
})
