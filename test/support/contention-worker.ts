/**
 * One process of the contention scenario: several waiters on one key, each hold written down in a second SQLite file
 * with its fence and with both ends on the clock that all processes of the host share.
 */
import Database from 'better-sqlite3'
import { createLeases, type Store, systemEnvironment } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { CLIENTS } from './servers/redis-clients.js'

export interface WorkerOrder {
  /** The path of a lease file, or the URL of a Redis server. */
  readonly store: string
  readonly referee: string
  readonly slot: number
  readonly waiters: number
  readonly ttlMs: number
  readonly holdMs: number
  /** Holds once, and for good. */
  readonly sits: boolean
}

const order = JSON.parse(process.argv[2] ?? '{}') as WorkerOrder
const { clock, host } = systemEnvironment()
const pause = (ms: number) => new Promise<void>((resolve) => clock.timer(ms, resolve, { keepAlive: true }))

const referee = new Database(order.referee, { timeout: 5000 })
referee.pragma('journal_mode = WAL')
referee.pragma('synchronous = OFF')
const enter = referee.prepare('INSERT INTO holds (fence, pid, waiter, entered) VALUES (CAST(? AS INTEGER), ?, ?, ?)')
const leave = referee.prepare('UPDATE holds SET exited = ? WHERE fence = CAST(? AS INTEGER)')

async function openStore(): Promise<Store> {
  if (!order.store.startsWith('redis:')) return sqliteStore({ path: order.store })
  const library = CLIENTS[order.slot % CLIENTS.length]
  if (!library) throw new Error('no client library')
  const client = await library.open({
    port: Number(new URL(order.store).port),
    connect: false,
    also: { lazyConnect: true },
  })
  return redisStore(client, { trustRestart: true })
}

const leases = createLeases(await openStore(), { ttlMs: order.ttlMs })
let stopped = false

async function wait(waiter: number): Promise<void> {
  while (!stopped) {
    const lease = await leases.acquire('contended').catch((error) => {
      if (error.code !== 'ERR_LEASE_UNAVAILABLE') throw error
      return null
    })
    // No answer in time, as on a machine that is busy with starting processes.
    if (!lease) {
      await pause(20)
      continue
    }
    const fence = String(lease.fence)
    enter.run(fence, process.pid, waiter, host.now())
    if (order.sits && waiter % order.waiters === 0) {
      process.send?.('sitting')
      await new Promise(() => {})
    }
    await pause(order.holdMs)
    if (!lease.held && !stopped) process.send?.({ falseLoss: fence })
    leave.run(host.now(), fence)
    await lease.release()
  }
}

process.on('message', (message) => {
  if (message === 'cpu') process.send?.({ cpu: process.cpuUsage() })
  if (message === 'stop') {
    stopped = true
    leases.close().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
})
process.on('disconnect', () => process.exit(0))

process.send?.('ready')
for (let i = 0; i < order.waiters; i++) void wait(order.slot * order.waiters + i).catch(() => {})
