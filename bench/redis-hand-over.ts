import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisServer, redisServer } from '../test/support/servers/redis.js'
import { CONTESTANTS, type Id } from './contestants/index.js'
import { hostNow } from './support/host-clock.js'
import { commandCounts, executed } from './support/redis-counters.js'
import { redisOptions, USAGE } from './support/redis-options.js'
import { inRounds, middle, nameOf, type Results } from './support/rounds.js'
import { figure, table } from './support/table.js'
import { type Turns, turnsBetween } from './support/turns.js'
import { Worker } from './support/workers.js'

export const summary = `many waiters of several processes on one key, on one Redis server: ${USAGE}`

const TTL_MS = 10_000
const HOLD_MS = 5
const THINK_MS = 20

interface HandOver extends Turns {
  readonly sent: number
  readonly executed: number
}

export async function run(args: readonly string[]): Promise<void> {
  const { ids, waiters, isQuick, ...options } = redisOptions(args)
  const server = await redisServer()
  try {
    for (const count of waiters) {
      const rounds = options.rounds ?? (isQuick ? 1 : 3)
      const processes = count <= 8 ? 2 : 4
      const what = `${count} waiters in ${processes} processes`
      const measure = (id: Id) => handOver(server, id, { waiters: count, processes, ms: isQuick ? 500 : 2000 })
      report(what, await inRounds(rounds, ids, `hand-over, ${what}`, measure))
    }
  } finally {
    await server.end()
  }
}

async function handOver(
  server: RedisServer,
  id: Id,
  { waiters, processes, ms }: { readonly waiters: number; readonly processes: number; readonly ms: number },
): Promise<HandOver> {
  const workers = Array.from({ length: processes }, () => new Worker(id, { port: server.port, ttlMs: TTL_MS }))
  try {
    await Promise.all(workers.map((worker) => worker.ask('cycles', { inFlight: 1, warmMs: 0, ms: 50 })))
    // Everyone has asked once by the time that counting begins.
    const from = hostNow() + 10 * THINK_MS
    const until = from + ms
    const wish = { key: 'bench', waiters: waiters / processes, holdMs: HOLD_MS, thinkMs: THINK_MS, until }
    const turns = workers.map((worker) => worker.ask('contend', wish))
    await sleep(from - hostNow())
    const before = await commandCounts(server)
    await sleep(until - hostNow())
    const after = await commandCounts(server)
    const seen = turnsBetween((await Promise.all(turns)).flat(), waiters, from, until)
    const { sent, all } = executed(before, after, CONTESTANTS[id].sends)
    if (seen.overlaps > 0) console.log(`\n${nameOf(id)}: two held the key at once, ${seen.overlaps} times`)
    return { ...seen, sent: sent / seen.turns, executed: all / seen.turns }
  } finally {
    await Promise.all(workers.map((worker) => worker.end()))
  }
}

function report(what: string, results: Results<HandOver>): void {
  const rows = [...results].map(([id, rounds]) => [
    nameOf(id),
    ...[
      middle(rounds, (each) => each.perSecond),
      middle(rounds, (each) => each.gapP50Ms),
      middle(rounds, (each) => each.gapP99Ms),
      Math.max(...rounds.map((each) => each.longestWaitMs)),
    ].map(figure),
    `${Math.round(middle(rounds, (each) => each.most))} / ${Math.round(middle(rounds, (each) => each.fewest))}`,
    `${Math.max(...rounds.map((each) => each.starved))}`,
    figure(middle(rounds, (each) => each.sent)),
    figure(middle(rounds, (each) => each.executed)),
  ])
  console.log(`\nHand-over: ${what}, one key held ${HOLD_MS} ms, asked for again ${THINK_MS} ms later\n`)
  const head = ['acquisitions/s', 'gap p50 ms', 'gap p99 ms', 'longest wait ms', 'most / fewest turns', 'starved']
  console.log(table(['', ...head, 'commands/acquisition', 'with those in scripts'], rows))
}
