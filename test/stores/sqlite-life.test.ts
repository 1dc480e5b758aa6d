import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseStat } from '../../src/process-stat.js'
import { decodeLife, encodeLife, hasEnded, type ProcessView, type RecordedLife } from '../../src/stores/sqlite/life.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { type ActorOptions, claim, stage } from '../support/sqlite-actors.js'
import { openToAll, privileged } from '../support/sqlite-hosts.js'
import { hostNow, takeOversAfterKill } from '../support/sqlite-scenarios.js'

const call = () => ({ signal: new AbortController().signal })
const here = { host: 'boot 1', pidNamespace: 'pid:[1]' }
const life = (...pids: number[]): RecordedLife => ({ ...here, processes: pids.map((pid) => ({ pid, started: '100' })) })
const running: ProcessView = { started: '100', state: 'S', threads: 8 }

test('a holder is dead only when every process of it certainly is', () => {
  const cases: [string, ProcessView, boolean][] = [
    ['no such process', 'gone', true],
    ['hidden by hidepid, or another user', 'hidden', false],
    ['running', running, false],
    ['stopped', { ...running, state: 'T' }, false],
    ['another process with its number', { ...running, started: '101' }, true],
    ['a zombie', { ...running, state: 'Z', threads: 1 }, true],
    ['a finished leader whose threads still run', { ...running, state: 'Z', threads: 3 }, false],
  ]
  for (const [what, view, ended] of cases) {
    assert.equal(
      hasEnded(life(7), here, () => view),
      ended,
      what,
    )
    assert.equal(
      hasEnded(life(7, 8), here, (pid) => (pid === 7 ? view : running)),
      false,
      `${what}, but another lives`,
    )
    assert.equal(
      hasEnded(life(7, 8), here, (pid) => (pid === 7 ? view : 'gone')),
      ended,
      `${what}, and another is gone`,
    )
  }
})

test('a death is not seen from another boot, time namespace or pid namespace, nor where nothing was recorded', () => {
  const gone = () => 'gone' as const
  assert.equal(hasEnded(life(7), here, gone), true, 'the control')
  assert.equal(hasEnded(life(7), { ...here, host: 'boot 2' }, gone), false)
  assert.equal(hasEnded(life(7), { ...here, pidNamespace: 'pid:[2]' }, gone), false)
  assert.equal(hasEnded(life(7), null, gone), false)
  assert.equal(hasEnded(null, here, gone), false)
  assert.equal(hasEnded(life(), here, gone), false, 'no process at all')
})

test('what was recorded is read again, and what cannot be understood says nothing', () => {
  assert.deepEqual(decodeLife(encodeLife(life(7, 8))), life(7, 8))
  for (const text of [
    '',
    '{}',
    '[]',
    '[1,2]',
    '["h","n",[0,"1"]]',
    '["h","n",[-1,"1"]]',
    '["h","n",["7","1"]]',
    '["h","n",7]',
    'null',
  ]) {
    assert.equal(
      hasEnded(decodeLife(text), { host: 'h', pidNamespace: 'n' }, () => 'gone'),
      false,
      text,
    )
  }
  const line = `7 (a (name) of :- 1 Z 2) S ${Array.from({ length: 30 }, (_, i) => i + 4).join(' ')}`
  const { name, state, parent, threads, started } = parseStat(line) ?? {}
  assert.deepEqual([name, state, parent, threads, started], ['a (name) of :- 1 Z 2', 'S', 4, 20, '22'])
  assert.equal(parseStat(''), null)
})

test('kill -9 of a holder that can be seen: a waiter in another process has the key within 100 ms', async () => {
  const gaps = (await takeOversAfterKill(8)).map(({ afterKill }) => afterKill)
  assert.ok(Math.max(...gaps) < 100, `take-overs after ${gaps.map(Math.round).join(', ')} ms`)
})

/** `--kill-child`: the actor is the first process of its namespace, and dies with the `unshare` that made it. */
const hiddenHolders: [string, ActorOptions][] = [
  [
    'in a pid namespace of its own',
    { through: ['unshare', '--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc'] },
  ],
  [
    'in a pid namespace of its own, with the outer /proc',
    { through: ['unshare', '--pid', '--fork', '--kill-child=SIGKILL'] },
  ],
]
for (const [where, options] of hiddenHolders) {
  test(`kill -9 of a holder ${where}: taken over when its TTL has passed, and not before`, privileged, async () => {
    const ttlMs = 400
    for (const { afterEnd } of await takeOversAfterKill(2, options, ttlMs)) {
      // The end was read after the grant was reported, so that a take-over may seem early by the time that took.
      assert.ok(afterEnd > -60 && afterEnd < 250, `taken over ${afterEnd} ms after the TTL had passed`)
    }
  })
}

test('a contender in another pid namespace does not take a living process for a dead one', privileged, async () => {
  await stage(async (_, actor) => {
    const holder = await actor()
    await holder.acquire(claim({ ttlMs: 60_000 }))
    for (const through of [
      ['unshare', '--pid', '--fork', '--mount-proc'],
      ['unshare', '--pid', '--fork'],
      ['unshare', '--mount-proc', '--pid', '--mount', '--fork'],
    ]) {
      const contender = await actor({ through })
      for (let i = 0; i < 3; i++) assert.equal((await contender.acquire(claim())).kind, 'held')
    }
    // Within one namespace, the same pair sees it: so does a mount namespace of its own.
    const neighbour = await actor({ through: ['unshare', '--mount'] })
    assert.equal((await neighbour.acquire(claim())).kind, 'held')
    await holder.kill()
    assert.equal((await neighbour.acquire(claim())).kind, 'granted')
  })
})

test(
  'hidepid: a user who cannot see the holder waits for it, and takes over from it when it is dead',
  privileged,
  async () => {
    await stage(async (folder, actor) => {
      const holder = await actor()
      await holder.acquire(claim({ ttlMs: 60_000 }))
      openToAll(folder)
      const contender = await actor({
        through: [
          'unshare',
          '--mount',
          'sh',
          '-ec',
          'mount -t proc -o hidepid=2 proc /proc; exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"',
          'sh',
        ],
      })
      assert.equal(await contender.sees(holder.process.pid ?? 0), false, 'the control: invisible to the contender')
      for (let i = 0; i < 3; i++) assert.equal((await contender.acquire(claim())).kind, 'held', 'invisible is not gone')
      await holder.kill()
      assert.equal((await contender.acquire(claim())).kind, 'granted')
    })
  },
)

test('a lease that was asked to last is not freed by a death: outlives-process, lock delay, minimal hold', async () => {
  await stage(async (_, actor) => {
    const holder = await actor()
    const lasting = [{ life: 'outlives-process' as const }, { lockDelayMs: 1 }, { minHoldMs: 1 }]
    for (const [i, over] of lasting.entries()) await holder.acquire(claim({ name: `k${i}`, ttlMs: 60_000, ...over }))
    await holder.acquire(claim({ name: 'control', ttlMs: 60_000 }))
    await holder.kill()
    const contender = await actor()
    assert.equal((await contender.acquire(claim({ name: 'control' }))).kind, 'granted')
    for (const i of lasting.keys()) assert.equal((await contender.acquire(claim({ name: `k${i}` }))).kind, 'held')
  })
})

test('a renewal moves the lease to other processes; one that cannot be told apart frees nothing', async () => {
  await stage(async (folder, actor) => {
    const [first, second] = [await actor(), await actor()]
    const store = sqliteStore({ path: `${folder}/leases.db` })
    const pidOf = ({ process }: typeof first) => process.pid ?? 0
    const taken = claim({ ttlMs: 60_000, life: { pids: [pidOf(first)] } })
    const grant = await store.acquire(taken, call())
    assert.ok(grant.kind === 'granted')
    const held = { ...taken, fence: grant.fence }
    await store.renew({ ...held, life: { pids: [pidOf(second)] } }, call())
    // A renewal that says nothing of it changes nothing of it.
    await store.renew(
      { key: held.key, owner: held.owner, ttlMs: 60_000, lockDelayMs: 0, fence: held.fence, fenceFloor: 0n },
      call(),
    )
    await first.kill()
    assert.equal((await store.acquire(claim(), call())).kind, 'held', 'it is the second now')
    await second.kill()
    assert.equal((await store.acquire(claim(), call())).kind, 'granted')

    const third = await actor()
    const other = claim({ name: 'other', ttlMs: 60_000, life: { pids: [pidOf(third)] } })
    const granted = await store.acquire(other, call())
    assert.ok(granted.kind === 'granted')
    const dead = { pids: [pidOf(third), pidOf(second)] }
    await store.renew({ ...other, fence: granted.fence, life: dead }, call())
    await third.kill()
    assert.equal((await store.acquire(claim({ name: 'other' }), call())).kind, 'held', 'by time only')
    await store.close()
  })
})

test('of several recorded processes all must be dead; a stopped one lives; a zombie is dead', async () => {
  await stage(async (folder, actor) => {
    const [one, two] = [await actor(), await actor()]
    const pids = [one.process.pid ?? 0, two.process.pid ?? 0]
    const store = sqliteStore({ path: `${folder}/leases.db` })
    await store.acquire(claim({ ttlMs: 60_000, life: { pids } }), call())
    await one.kill()
    assert.equal((await store.acquire(claim(), call())).kind, 'held')
    await two.kill('SIGSTOP')
    assert.equal((await store.acquire(claim(), call())).kind, 'held')
    await two.kill()
    assert.equal((await store.acquire(claim({ name: 'k' }), call())).kind, 'granted')
    // A shell that does not reap: its child stays behind as a zombie.
    const { spawn } = await import('node:child_process')
    const shell = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
    const pid = Number(await new Promise((resolve) => shell.stdout.once('data', resolve)))
    try {
      await store.acquire(claim({ name: 'zombie', ttlMs: 60_000, life: { pids: [pid] } }), call())
      assert.equal((await store.acquire(claim({ name: 'zombie' }), call())).kind, 'held')
      process.kill(pid, 'SIGKILL')
      await sleep(50)
      process.kill(pid, 0) // still there
      assert.equal((await store.acquire(claim({ name: 'zombie' }), call())).kind, 'granted')
    } finally {
      shell.kill('SIGKILL')
      await store.close()
    }
  })
})

test('a process that is named but cannot be told from a later one frees nothing early', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: `${folder}/leases.db` })
    for (const pids of [[], [0], [-1], [1.5], [2 ** 30], [process.pid, 2 ** 30]]) {
      const name = pids.join()
      await store.acquire(claim({ name, ttlMs: 60_000, life: { pids } }), call())
      const began = hostNow()
      assert.equal((await store.acquire(claim({ name }), call())).kind, 'held', name)
      assert.ok(hostNow() - began < 1_000)
    }
    await store.close()
  })
})
