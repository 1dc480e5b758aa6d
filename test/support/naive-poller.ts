/** The control of tests about the cost of waiting: a process that does nothing but look, every few milliseconds. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { Redis } from 'ioredis'

export interface Polling {
  /** The path of a SQLite file, or the URL of a Redis server. */
  readonly store: string
  readonly everyMs: number
}

/** Resolves once it polls. It answers `cpu` with what it has used, and ends with us. */
export async function naivePoller(polling: Polling): Promise<ChildProcess> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(polling)])
  await once(child, 'message')
  return child
}

async function poll({ store, everyMs }: Polling): Promise<void> {
  setInterval(await look(store), everyMs)
  process.on('message', () => process.send?.({ cpu: process.cpuUsage() }))
  process.on('disconnect', () => process.exit(0))
  process.send?.('polling')
}

async function look(store: string): Promise<() => unknown> {
  if (store.startsWith('redis:')) {
    const redis = new Redis(store)
    await redis.ping()
    return () => redis.get('holdfast:lease:default:contended')
  }
  const version = new Database(store).prepare('PRAGMA data_version')
  return () => version.get()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await poll(JSON.parse(process.argv[2] ?? '{}') as Polling)
