/** kill -9 of a holder on Redis, the library or `holdfast run`, and how soon a waiter in another process holds. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { systemEnvironment } from '../../src/index.js'
import { redisServer } from './servers/redis.js'

const CLI = fileURLToPath(new URL('../../bundle/cli/main.js', import.meta.url))
const WORKER = fileURLToPath(new URL('./redis-take-over-worker.js', import.meta.url))
const LEASE = 'holdfast:lease:default:key'
const { host } = systemEnvironment()

/** `library`: an application · `run`: the command line. */
export type HolderKind = 'library' | 'run'

export interface TakeOver {
  /** From the kill to the belief of the next holder. */
  readonly afterKillMs: number
  /** What was left of the lease, by the server, when the holder was dead. */
  readonly leftMs: number
}

export async function takeOvers(kind: HolderKind, kills: number, ttlMs: number): Promise<TakeOver[]> {
  const server = await redisServer()
  try {
    const found: TakeOver[] = []
    // A server that has just started grants nothing at first: not what is measured here.
    await grants(server.port, ttlMs)
    for (let i = 0; i < kills; i++) found.push(await takeOver(kind, server, ttlMs, (i * ttlMs) / kills))
    return found
  } finally {
    await server.end()
  }
}

type Server = Awaited<ReturnType<typeof redisServer>>

async function takeOver(kind: HolderKind, server: Server, ttlMs: number, waitMs: number): Promise<TakeOver> {
  const holder = kind === 'run' ? await startRun(server.port, ttlMs) : await startWorker(server.port, ttlMs)
  const waiter = worker(server.port, ttlMs)
  const held = hear(waiter, 'held')
  held.catch(() => {})
  try {
    await hear(waiter, 'started')
    // At a different moment of the heartbeat each time.
    await sleep(150 + waitMs)
    const killedAt = host.now()
    holder.kill('SIGKILL')
    const leftMs = Number(await server.send('PTTL', LEASE))
    const { at } = await held
    return { afterKillMs: at - killedAt, leftMs }
  } finally {
    for (const child of [holder, waiter]) await end(child)
    // The next holder need not wait for this waiter's lease.
    await server.send('DEL', LEASE)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const worker = (port: number, ttlMs: number): ChildProcess =>
  spawn(process.execPath, [WORKER, `${port}`, `${ttlMs}`], { stdio: ['pipe', 'pipe', 'inherit'] })

async function startWorker(port: number, ttlMs: number): Promise<ChildProcess> {
  const child = worker(port, ttlMs)
  await hear(child, 'held')
  return child
}

async function startRun(port: number, ttlMs: number): Promise<ChildProcess> {
  const store = `redis://127.0.0.1:${port}?max-ttl=${ttlMs}ms`
  const args = ['run', '--store', store, '--ttl', `${ttlMs}ms`, 'key', '--', 'sh', '-c', 'echo up; exec sleep 600']
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  return child
}

async function grants(port: number, ttlMs: number): Promise<void> {
  await end(await startWorker(port, ttlMs))
  await sleep(ttlMs)
}

interface Told {
  readonly event: string
  /** On the clock of this host. */
  readonly at: number
}

function hear(child: ChildProcess, event: string): Promise<Told> {
  return new Promise((resolve, reject) => {
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const told = JSON.parse(line) as Told
        if (told.event === event) resolve(told)
      })
    child.once('exit', () => reject(new Error(`the worker ended without ${event}`)))
  })
}
