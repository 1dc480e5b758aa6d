/** What one side believes and the other is told, each with its time on the clock of the test. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease, LeaseEvent } from '../../src/index.js'
import { now } from './redis-bed.js'

type AttemptEvent = Extract<LeaseEvent, { type: 'attempt' }>

/** Of whom `observe` is given to. */
export class Diary {
  readonly #entries: { readonly at: number; readonly event: LeaseEvent }[] = []
  readonly observe = (event: LeaseEvent): void => void this.#entries.push({ at: now(), event })

  /** What was answered to questions for this key since then, in order. */
  attempts(key: string, since = 0): (AttemptEvent & { readonly at: number })[] {
    return this.#entries.flatMap(({ at, event }) =>
      event.type === 'attempt' && event.key === key && at >= since ? [{ ...event, at }] : [],
    )
  }

  /** Why the last renewal since then gave no verdict. */
  lastRisk(since = 0): string {
    const risks = this.#entries.flatMap(({ at, event }) =>
      event.type === 'at-risk' && at >= since ? [event.error] : [],
    )
    return String((risks.at(-1) as Error | undefined)?.message)
  }

  /** How often that was told since then. */
  count(type: LeaseEvent['type'], since = 0): number {
    return this.#entries.filter(({ at, event }) => event.type === type && at >= since).length
  }
}

export interface Belief {
  /** The last moment at which it was seen held. */
  readonly lastHeldAt: number
  readonly reason: string | undefined
}

/** Resolves when the holder has stopped believing. */
export async function endOfBelief(lease: Lease): Promise<Belief> {
  let lastHeldAt = 0
  for (;;) {
    const readAt = now()
    if (!lease.held) break
    // Nothing but the clock ends it from here on, unless a renewal says so first: then the next round sees it.
    lastHeldAt = readAt
    await sleep(5)
  }
  return { lastHeldAt, reason: (lease.signal.reason as { reason?: string } | undefined)?.reason }
}
