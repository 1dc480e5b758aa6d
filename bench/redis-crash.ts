import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisServer, redisServer } from '../test/support/servers/redis.js'
import { CONTESTANTS, type Id } from './contestants/index.js'
import { ascending, quantile } from './support/quantile.js'
import { redisOptions, USAGE } from './support/redis-options.js'
import { inRounds, nameOf, type Results } from './support/rounds.js'
import { figure, table } from './support/table.js'
import { Worker } from './support/workers.js'

export const summary = `a holder is killed with -9: how soon the next one holds, on one Redis server: ${USAGE}`

const TTL_MS = 2000
/** Held by one process and killed with it, each with a waiter of its own in another: as many hand-overs for one wait. */
const KEYS = 10

export async function run(args: readonly string[]): Promise<void> {
  const { ids, rounds, isQuick } = redisOptions(args)
  const server = await redisServer()
  try {
    const kills = rounds ?? (isQuick ? 1 : 2)
    report(await inRounds(kills, ids, 'crash of the holder', (id) => kill(server, id)))
  } finally {
    await server.end()
  }
}

let used = 0

/** Milliseconds from the moment at which the server let go to the moment at which the next one knew that it holds. */
async function kill(server: RedisServer, id: Id): Promise<number[]> {
  const keys = Array.from({ length: KEYS }, () => `bench:${++used}`)
  const setup = { port: server.port, ttlMs: TTL_MS }
  const [holder, waiter] = [new Worker(id, setup), new Worker(id, setup)]
  try {
    // Spread, so that neither the heartbeats nor the ends of the leases come in one moment.
    await holder.ask('keep', { keys, spreadMs: TTL_MS / 3 })
    const inherited = waiter.ask('inherit', { keys })
    await sleep(100 + Math.random() * TTL_MS)
    await holder.end()
    const ends = await Promise.all(keys.map((key) => server.send('PEXPIRETIME', CONTESTANTS[id].serverKey(key))))
    return (await inherited).map((at, index) => at - Number(ends[index]))
  } finally {
    await Promise.all([holder.end(), waiter.end()])
  }
}

function report(results: Results<readonly number[]>): void {
  const rows = [...results].map(([id, rounds]) => {
    const after = ascending(rounds.flat())
    return [nameOf(id), `${after.length}`, figure(quantile(after, 0.5)), figure(after.at(-1) ?? Number.NaN)]
  })
  console.log(`\nThe holder is killed with -9, TTL ${TTL_MS} ms: from the end of the lease to the next holder\n`)
  console.log(table(['', 'leases', 'p50 ms', 'max ms'], rows))
}
