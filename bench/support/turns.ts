import type { Turn } from '../jobs/contend.js'
import { ascending, quantile } from './quantile.js'

export interface Turns {
  readonly perSecond: number
  readonly gapP50Ms: number
  readonly gapP99Ms: number
  readonly longestWaitMs: number
  /** Turns of the waiter with the most, and of the one with the fewest. */
  readonly most: number
  readonly fewest: number
  /** Waiters without a turn. */
  readonly starved: number
  /** How often two held the key at once. */
  readonly overlaps: number
  readonly turns: number
}

/** What happened between two moments, seen from the key: `all` are the turns of all waiters, in any order. */
export function turnsBetween(all: readonly Turn[], waiters: number, from: number, until: number): Turns {
  const turns = all.filter((turn) => turn.held >= from && turn.held < until).sort((a, b) => a.held - b.held)
  const gaps: number[] = []
  let overlaps = 0
  turns.reduce((before, turn) => {
    if (turn.held < before.freed) overlaps++
    // The same waiter again is no hand-over: in between it has thought.
    if (turn.waiter !== before.waiter) gaps.push(turn.held - before.freed)
    return turn
  })
  const counts = new Map<string, number>()
  for (const { waiter } of turns) counts.set(waiter, (counts.get(waiter) ?? 0) + 1)
  const byCount = ascending([...counts.values()])
  const sorted = ascending(gaps)
  const asking = all.filter((turn) => turn.asked < until && turn.held >= from)
  return {
    perSecond: turns.length / ((until - from) / 1000),
    gapP50Ms: quantile(sorted, 0.5),
    gapP99Ms: quantile(sorted, 0.99),
    longestWaitMs: Math.max(...asking.map((turn) => Math.min(turn.held, until) - turn.asked)),
    most: byCount.at(-1) ?? 0,
    fewest: counts.size < waiters ? 0 : (byCount[0] ?? 0),
    starved: waiters - counts.size,
    overlaps,
    turns: turns.length,
  }
}
