import { type RedisServer, redisServer } from '../test/support/servers/redis.js'
import { CONTESTANTS, type Id } from './contestants/index.js'
import { commandCounts, executed, serverMemory } from './support/redis-counters.js'
import { redisOptions, USAGE } from './support/redis-options.js'
import { inRounds, middle, nameOf, type Results } from './support/rounds.js'
import { figure, table } from './support/table.js'
import { Worker } from './support/workers.js'

export const summary = `what it costs to go on holding many leases, on one Redis server: ${USAGE}`

const TTL_MS = 10_000
const HEARTBEAT_MS = TTL_MS / 3

interface Holding {
  readonly load: number
  readonly sentPerSecond: number
  readonly executedPerSecond: number
  readonly clientBytes: number
  readonly serverBytes: number
}

export async function run(args: readonly string[]): Promise<void> {
  const { ids, leases, rounds, isQuick } = redisOptions(args)
  for (const count of leases) {
    const ms = isQuick ? HEARTBEAT_MS : 3 * HEARTBEAT_MS
    const what = `holding ${count} leases`
    report(count, await inRounds(rounds ?? 1, ids, what, (id) => holding(id, count, ms)))
  }
}

async function holding(id: Id, count: number, ms: number): Promise<Holding> {
  const server = await redisServer()
  const worker = new Worker(id, { port: server.port, ttlMs: TTL_MS })
  try {
    await worker.ask('cycles', { inFlight: 16, warmMs: 0, ms: 200 })
    const memory = await serverMemory(server)
    const keys = Array.from({ length: count }, (_, number) => `bench:${number}`)
    // As many come in any moment of a heartbeat: leases that were all taken at once would all be renewed at once.
    const { bytes } = await worker.ask('keep', { keys, spreadMs: HEARTBEAT_MS })
    const serverBytes = ((await serverMemory(server)) - memory) / count
    const before = await commandCounts(server)
    const { load } = await worker.ask('rest', { ms })
    const { sent, all } = executed(before, await commandCounts(server), CONTESTANTS[id].sends)
    await demandAllHeld(server, id, keys)
    const seconds = ms / 1000
    return { load, sentPerSecond: sent / seconds, executedPerSecond: all / seconds, clientBytes: bytes, serverBytes }
  } finally {
    await worker.end()
    await server.end()
  }
}

/** Whoever has lost some on the way has held the rest too cheaply. */
async function demandAllHeld(server: RedisServer, id: Id, keys: readonly string[]): Promise<void> {
  const held = await server.send('EXISTS', ...keys.map(CONTESTANTS[id].serverKey))
  if (held !== keys.length) console.log(`\n${nameOf(id)}: of ${keys.length} leases only ${held} were held to the end`)
}

function report(count: number, results: Results<Holding>): void {
  const rows = [...results].map(([id, rounds]) => [
    nameOf(id),
    ...[
      middle(rounds, (each) => each.load * 100),
      middle(rounds, (each) => each.sentPerSecond),
      middle(rounds, (each) => each.executedPerSecond),
      middle(rounds, (each) => each.clientBytes / 1000),
      middle(rounds, (each) => each.serverBytes / 1000),
    ].map(figure),
  ])
  console.log(`\nHolding ${count.toLocaleString('en')} leases, TTL ${TTL_MS / 1000} s\n`)
  const head = ['client CPU % of a core', 'commands/s', 'with those in scripts', 'client kB/lease', 'server kB/lease']
  console.log(table(['', ...head], rows))
}
