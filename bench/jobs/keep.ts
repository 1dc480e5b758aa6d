import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Contestant, Held } from '../contestants/contestant.js'

/** Everything held until this process ends. */
const held: Held[] = []

/** Takes these keys, spread evenly over a while, and keeps them alive: the memory of this process for one of them. */
export async function keep(
  contestant: Contestant,
  { keys, spreadMs }: { readonly keys: readonly string[]; readonly spreadMs: number },
): Promise<{ readonly bytes: number }> {
  const before = await usedBytes()
  const began = performance.now()
  const taken: Promise<Held>[] = []
  while (taken.length < keys.length) {
    const due = Math.ceil((keys.length * (performance.now() - began)) / spreadMs)
    for (const key of keys.slice(taken.length, due)) taken.push(contestant.hold(key))
    await sleep(5)
  }
  held.push(...(await Promise.all(taken)))
  taken.length = 0
  return { bytes: ((await usedBytes()) - before) / keys.length }
}

/** Does nothing but what keeping alive needs: the part of one core that this takes. */
export async function rest(_: Contestant, { ms }: { readonly ms: number }): Promise<{ readonly load: number }> {
  const cpu = process.cpuUsage()
  const from = performance.now()
  await sleep(ms)
  const { user, system } = process.cpuUsage(cpu)
  return { load: (user + system) / 1000 / (performance.now() - from) }
}

async function usedBytes(): Promise<number> {
  // What has just ended is let go only when the event loop has turned.
  await sleep(20)
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
