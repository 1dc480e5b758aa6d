import { redisServer } from '../test/support/servers/redis.js'
import type { Id } from './contestants/index.js'
import type { Cycles } from './jobs/cycles.js'
import { medianOf } from './support/median.js'
import { pin } from './support/pinned.js'
import { type RedisOptions, redisOptions, USAGE } from './support/redis-options.js'
import { inRounds, interval, middle, nameOf, type Results, timesRaw } from './support/rounds.js'
import { figure, table } from './support/table.js'
import { Worker } from './support/workers.js'

export const summary = `acquire and release of keys that nobody else wants, on one Redis server: ${USAGE}`

const TTL_MS = 10_000
/** The goal, alone: at most this many times what raw ioredis takes. */
const TIMES = 1.1

export async function run(args: readonly string[]): Promise<void> {
  const options = redisOptions(args)
  const server = await redisServer()
  const workers = new Map(options.ids.map((id) => [id, new Worker(id, { port: server.port, ttlMs: TTL_MS })]))
  const pids = [server.pid, ...[...workers.values()].map((worker) => worker.pid)]
  try {
    // Opened, and compiled, before anyone is measured.
    for (const worker of workers.values())
      await worker.ask('cycles', { inFlight: 16, warmMs: 0, ms: options.isQuick ? 100 : 500 })
    for (const inFlight of options.inFlight) {
      if (inFlight > 1) report(`${inFlight} at once`, await measure(workers, inFlight, options))
      else await alone(workers, pids, options)
    }
  } finally {
    await Promise.all([...workers.values()].map((worker) => worker.end()))
    await server.end()
  }
}

/**
 * On two cores a lone request is as fast as the sleeping core wakes up, which differs by three times from one second to
 * the next. With client and server on one core nobody sleeps, and what is measured is the work of both.
 */
async function alone(workers: Map<Id, Worker>, pids: readonly number[], options: RedisOptions): Promise<void> {
  const free = await measure(workers, 1, options)
  report('one at a time', free)
  const isMet = judge('one at a time', free)
  if (!isMet && !options.isQuick) process.exitCode = 1
  if (!pin(pids, 'one core')) return console.error('no taskset: not measured on one core')
  const pinned = await measure(workers, 1, options)
  pin(pids, 'all cores')
  report('one at a time, client and server on one core', pinned)
  judge('on one core', pinned)
}

/** Prints how it stands with the goal; true also where it was not measured. */
function judge(where: string, results: Results<Cycles>): boolean {
  const [raw, ours] = [results.get('raw'), results.get('holdfast')]
  if (!raw || !ours) return true
  const times = (of: (each: Cycles) => number) =>
    medianOf(ours.map((each, round) => of(each) / of(raw[round] as Cycles)))
  const typical = times((each) => each.p50Ms)
  const whole = times((each) => 1 / each.perSecond)
  const isMet = typical.median <= TIMES
  console.log(`\ngoal: ${where}, a lease takes at most ${TIMES} × raw ioredis`)
  console.log(`p50 takes × ${interval(typical)}, the mean × ${interval(whole)}; goal met: ${isMet ? 'yes' : 'no'}`)
  return isMet
}

function measure(workers: Map<Id, Worker>, inFlight: number, options: RedisOptions): Promise<Results<Cycles>> {
  const ms = options.isQuick ? 250 : inFlight === 1 ? 1000 : 600
  const wish = { inFlight, warmMs: ms / 4, ms }
  const rounds = options.rounds ?? (options.isQuick ? 1 : 5)
  return inRounds(rounds, options.ids, `acquire and release, ${inFlight} at once`, async (id) => {
    const worker = workers.get(id)
    if (!worker) throw new Error(`${id} has no process`)
    return worker.ask('cycles', wish)
  })
}

function report(title: string, results: Results<Cycles>): void {
  const rows = [...results].map(([id, rounds]) => [
    nameOf(id),
    figure(middle(rounds, (each) => each.perSecond)),
    timesRaw(results, id, (each) => each.perSecond),
    figure(middle(rounds, (each) => each.p50Ms)),
    figure(middle(rounds, (each) => each.p99Ms)),
    figure(middle(rounds, (each) => each.cpuUs)),
  ])
  console.log(`\nAcquire and release, ${title}\n`)
  console.log(table(['', 'leases/s', '× raw', 'p50 ms', 'p99 ms', 'client CPU µs/lease'], rows))
}
