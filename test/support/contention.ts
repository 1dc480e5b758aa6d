/**
 * Many processes with many waiters on one key, in a SQLite file or on a Redis server. What was held when is read
 * afterwards from a file of its own, so that nothing of the judgement depends on the store under test.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { systemEnvironment } from '../../src/index.js'
import type { WorkerOrder } from './contention-worker.js'
import { naivePoller } from './naive-poller.js'
import { redisServer } from './servers/redis.js'

const WORKER = fileURLToPath(new URL('./contention-worker.js', import.meta.url))
const { host } = systemEnvironment()

export type StoreKind = 'sqlite' | 'redis'

export interface Contention {
  /** Default `'sqlite'`. On Redis the processes use the client libraries in turn. */
  readonly store?: StoreKind
  readonly processes: number
  readonly waiters: number
  readonly seconds: number
  readonly killsPerSecond?: number
}

export interface Verdict {
  readonly holds: number
  readonly kills: number
  /** Holds that began before an earlier one (by fence) had ended. */
  readonly overlaps: readonly string[]
  /** Holds in the order of time whose fences are not. */
  readonly fencesOutOfOrder: number
  /** How often the most and the least fortunate waiter was served. */
  readonly most: number
  readonly least: number
  /** Leases that ran out although nobody paused their process. */
  readonly falseLosses: number
}

interface Hold {
  readonly fence: number
  readonly pid: number
  readonly waiter: number
  readonly entered: number
  readonly exited: number | null
}

export async function contend(contention: Contention): Promise<Verdict> {
  const { processes, waiters, seconds, killsPerSecond = 0 } = contention
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-contention-'))
  const { store, end } = await openStore(contention, folder)
  const referee = openReferee(folder)
  const killedAt = new Map<number, number>()
  let falseLosses = 0
  const start = (slot: number) =>
    startWorker(
      { store, referee: refereeIn(folder), slot, waiters, ttlMs: 2000, holdMs: 2, sits: false },
      (message) => {
        if (typeof message === 'object' && message !== null && 'falseLoss' in message) falseLosses++
      },
    )
  const workers = Array.from({ length: processes }, (_, slot) => start(slot))
  try {
    await Promise.all(workers.map((worker) => once(worker, 'message')))
    const until = host.now() + seconds * 1000
    for (let round = 0; host.now() < until; round++) {
      await sleep(killsPerSecond > 0 ? 1000 / killsPerSecond : until - host.now())
      const slot = round % processes
      const victim = workers[slot]
      if (killsPerSecond === 0 || host.now() >= until || !victim?.pid) continue
      victim.kill('SIGKILL')
      await once(victim, 'exit')
      killedAt.set(victim.pid, host.now())
      workers[slot] = start(slot)
    }
    await Promise.all(workers.map(stopWorker))
    const holds = referee
      .prepare('SELECT fence, pid, waiter, entered, exited FROM holds ORDER BY entered')
      .all() as Hold[]
    return { ...judge(holds, killedAt, processes * waiters), kills: killedAt.size, falseLosses }
  } finally {
    for (const worker of workers) worker.kill('SIGKILL')
    referee.close()
    await end()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Exported for its own control: a judge that finds nothing must be shown something to find. */
export function judge(holds: readonly Hold[], killedAt: ReadonlyMap<number, number>, waiters: number) {
  const overlaps: string[] = []
  let fencesOutOfOrder = 0
  let last: Hold | undefined
  const served = new Array<number>(waiters).fill(0)
  for (const hold of holds) {
    served[hold.waiter] = (served[hold.waiter] ?? 0) + 1
    if (last) {
      const end = last.exited ?? killedAt.get(last.pid) ?? Number.POSITIVE_INFINITY
      if (hold.entered < end)
        overlaps.push(`fence ${hold.fence} began ${(end - hold.entered).toFixed(3)} ms before ${last.fence} ended`)
      if (hold.fence <= last.fence) fencesOutOfOrder++
    }
    last = hold
  }
  return { holds: holds.length, overlaps, fencesOutOfOrder, most: Math.max(...served), least: Math.min(...served) }
}

/** Of all waiting processes together, and of as many that do nothing but look. In seconds of CPU, over the same time. */
export interface Quiet {
  readonly waiting: number
  readonly polling: number
}

/** One waiter holds and all others wait, beside the control: as many processes that look every `everyMs`. */
export async function waitQuietly(contention: Contention, everyMs: number): Promise<Quiet> {
  const { processes, waiters, seconds } = contention
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-quiet-'))
  const { store, end } = await openStore(contention, folder)
  const referee = openReferee(folder)
  const order = { store, referee: refereeIn(folder), waiters, ttlMs: 10_000, holdMs: 2 }
  const workers: ChildProcess[] = []
  const pollers: ChildProcess[] = []
  try {
    const sitter = startWorker({ ...order, slot: 0, sits: true })
    workers.push(sitter)
    while ((await once(sitter, 'message'))[0] !== 'sitting');
    for (let slot = 1; slot < processes; slot++) workers.push(startWorker({ ...order, slot, sits: false }))
    await Promise.all(workers.slice(1).map((worker) => once(worker, 'message')))
    for (let i = 0; i < processes; i++) pollers.push(await naivePoller({ store, everyMs }))
    await sleep(2000)
    const before = { waiting: await cpuOf(workers), polling: await cpuOf(pollers) }
    await sleep(seconds * 1000)
    return { waiting: (await cpuOf(workers)) - before.waiting, polling: (await cpuOf(pollers)) - before.polling }
  } finally {
    for (const worker of [...workers, ...pollers]) worker.kill('SIGKILL')
    referee.close()
    await end()
    rmSync(folder, { recursive: true, force: true })
  }
}

const refereeIn = (folder: string) => join(folder, 'referee.db')

async function openStore({ store = 'sqlite' }: Contention, folder: string) {
  if (store === 'sqlite') return { store: join(folder, 'leases.db'), end: async () => {} }
  const server = await redisServer()
  return { store: server.url(), end: () => server.end() }
}

function openReferee(folder: string) {
  const referee = new Database(refereeIn(folder))
  referee.pragma('journal_mode = WAL')
  referee.exec('CREATE TABLE holds (fence INTEGER PRIMARY KEY, pid INTEGER, waiter INTEGER, entered REAL, exited REAL)')
  return referee
}

function startWorker(order: WorkerOrder, onMessage: (message: unknown) => void = () => {}): ChildProcess {
  const worker = fork(WORKER, [JSON.stringify(order)])
  worker.on('message', onMessage)
  return worker
}

async function stopWorker(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  worker.send('stop')
  await once(worker, 'exit')
}

async function cpuOf(workers: readonly ChildProcess[]): Promise<number> {
  const usages = workers.map(async (worker) => {
    worker.send('cpu')
    for (;;) {
      const [message] = (await once(worker, 'message')) as [{ cpu?: NodeJS.CpuUsage }]
      if (message.cpu) return (message.cpu.user + message.cpu.system) / 1e6
    }
  })
  return (await Promise.all(usages)).reduce((sum, seconds) => sum + seconds, 0)
}
