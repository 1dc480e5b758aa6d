/** `--cgroup`: what a command starts cannot leave it, even what leaves everything else by which it could be found. */
import assert from 'node:assert/strict'
import { accessSync, constants, existsSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { alive, bench, eventually, MAIN, pidsIn } from './support.js'

const cli = bench()

/** A session of its own, no parent, an empty environment. */
const DAEMON = `
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve('/bin/sh', ['sh', '-c', 'echo pid $$; exec sleep 300'], {})
    os._exit(0)
os.wait()
print('pid', os.getpid(), flush=True)
time.sleep(300)
`

/** Where we may make a control group; else why not. */
function ours(): { folder: string } | { skip: string } {
  try {
    const path = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
    const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/self/mounts', 'utf8'))?.[1]
    if (path === undefined || mount === undefined) return { skip: 'no control groups of version 2 here' }
    const folder = join(mount, path)
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK)
    return { folder }
  } catch (error) {
    return { skip: `control groups are not ours to make: ${error}` }
  }
}
const place = ours()
const possible = 'skip' in place ? { skip: place.skip } : {}

async function daemon(...options: string[]) {
  const runner = cli.start(['run', '--ttl', '1s', ...options, 'daemon', '--', 'python3', '-c', DAEMON])
  await eventually('both are there', () => pidsIn(runner.stdout()).length === 2)
  return { runner, pids: pidsIn(runner.stdout()) }
}

const folderOf = (group: string) => ('folder' in place ? join(place.folder, group.split('/').at(-1) ?? '') : '')
const groupOf = (pid: number) => /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? ''

test('a process that has left everything else is dead after a loss; without --cgroup it is not', possible, async () => {
  for (const options of [['--cgroup'], []]) {
    const { runner, pids } = await daemon(...options)
    await cli.run(['revoke', 'daemon'])
    assert.equal(await runner.exited, 76)
    const left = pids.filter(alive)
    assert.equal(left.length, options.length === 0 ? 1 : 0, 'the control: only the group reaches it')
    for (const pid of left) process.kill(pid, 'SIGKILL')
    await runner.ended
  }
})

test('kill -9 of holdfast: its watchdog reaches the group too', possible, async () => {
  const { runner, pids } = await daemon('--cgroup')
  const group = groupOf(pids[0] ?? 0)
  assert.match(group, /holdfast-/)
  for (const pid of pids) assert.equal(groupOf(pid), group)
  assert.doesNotMatch(groupOf(runner.pid), /holdfast-/, 'holdfast itself is not in it')
  runner.process.kill('SIGKILL')
  await eventually('all of it is dead', () => pids.every((pid) => !alive(pid)))
  await eventually('the group is gone', () => !existsSync(folderOf(group)))
  await runner.ended
})

test('the group goes with the command; a daemon that is left behind is named, and keeps it', possible, async () => {
  const gone = await cli.run(['run', '--cgroup', 'short', '--', 'sh', '-c', 'cat /proc/self/cgroup'])
  const [, group = ''] = /^0::(.*)$/m.exec(gone.stdout) ?? []
  assert.match(group, /holdfast-/)
  assert.ok(!existsSync(folderOf(group)))
  const left = await cli.run([
    'run',
    '--cgroup',
    'left',
    '--',
    'sh',
    '-c',
    'env -i setsid sleep 300 >/dev/null 2>&1 & echo pid $!',
  ])
  const [pid = 0] = pidsIn(left.stdout)
  assert.match(left.stderr, new RegExp(`left behind, now without the lease: .+\\(pid ${pid}\\)`))
  assert.equal(left.code, 0)
  const kept = folderOf(groupOf(pid))
  process.kill(pid, 'SIGKILL')
  await eventually('the group is empty', () => {
    try {
      rmdirSync(kept)
    } catch {}
    return !existsSync(kept)
  })
})

test('where no group may be made, nothing is run', possible, async () => {
  const { code, stderr, stdout } = await cli.spawn('unshare', [
    '--mount',
    'sh',
    '-c',
    'umount -l -a -t cgroup2; exec "$0" "$@"',
    process.execPath,
    MAIN,
    'run',
    '--cgroup',
    'k',
    '--',
    'echo',
    'ran',
  ]).ended
  assert.deepEqual([code, stdout], [64, ''])
  assert.match(stderr, /^holdfast: --cgroup is not possible here: .+leave it out\n$/)
})
