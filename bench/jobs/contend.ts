import { setTimeout as sleep } from 'node:timers/promises'
import type { Contestant } from '../contestants/contestant.js'
import { hostNow } from '../support/host-clock.js'

/** One turn of one waiter, by the clock of the host. */
export interface Turn {
  readonly waiter: string
  readonly asked: number
  /** Infinity: not before the end. */
  readonly held: number
  /** When it began to let go. */
  readonly freed: number
}

export interface Contention {
  readonly key: string
  readonly waiters: number
  readonly holdMs: number
  readonly thinkMs: number
  readonly until: number
}

/** Waiters of one process that want one key again and again. Whoever gets it after the end lets go at once. */
export async function contend(
  contestant: Contestant,
  { key, waiters, holdMs, thinkMs, until }: Contention,
): Promise<Turn[]> {
  const turns: Turn[] = []

  async function wait(waiter: string): Promise<void> {
    for (;;) {
      await sleep(thinkMs * (0.5 + Math.random()))
      const asked = hostNow()
      if (asked >= until) return
      const lease = await contestant.acquire(key)
      const held = hostNow()
      const isLate = held >= until
      if (!isLate) await sleep(holdMs)
      const freed = hostNow()
      await lease.release()
      turns.push(isLate ? { waiter, asked, held: Number.MAX_VALUE, freed } : { waiter, asked, held, freed })
    }
  }
  await Promise.all(Array.from({ length: waiters }, (_, number) => wait(`${process.pid}:${number}`)))
  return turns
}
