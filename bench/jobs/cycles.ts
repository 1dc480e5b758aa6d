import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Contestant } from '../contestants/contestant.js'
import { quantile } from '../support/quantile.js'

export interface Cycles {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of this process, all threads, for one lease. */
  readonly cpuUs: number
}

/** Names are used again after so many, as the names of jobs are; at no time is one asked for twice. */
const NAMES = 1024

/** `inFlight` loops at once, each acquiring and releasing a key of its own, over and over. */
export async function cycles(
  contestant: Contestant,
  { inFlight, warmMs, ms }: { readonly inFlight: number; readonly warmMs: number; readonly ms: number },
): Promise<Cycles> {
  let stopped = false
  let took: number[] = []

  async function loop(number: number): Promise<void> {
    for (let round = 0; !stopped; round++) {
      const key = `bench:${number}:${round % NAMES}`
      const began = performance.now()
      const held = await contestant.acquire(key)
      await held.release()
      took.push(performance.now() - began)
    }
  }
  const loops = Promise.all(Array.from({ length: inFlight }, (_, number) => loop(number)))
  await Promise.race([loops, sleep(warmMs)])
  took = []
  const cpu = process.cpuUsage()
  const from = performance.now()
  await Promise.race([loops, sleep(ms)])
  // A copy: what ends after this line is not counted.
  const counted = took.slice()
  const seconds = (performance.now() - from) / 1000
  const { user, system } = process.cpuUsage(cpu)
  stopped = true
  await loops
  counted.sort((a, b) => a - b)
  return {
    perSecond: counted.length / seconds,
    p50Ms: quantile(counted, 0.5),
    p99Ms: quantile(counted, 0.99),
    cpuUs: (user + system) / counted.length,
  }
}
