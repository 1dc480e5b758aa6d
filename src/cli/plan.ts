import { DEFAULTS } from '../options.js'
import { deadlineOf } from '../validity.js'
import { formatDuration } from './duration.js'
import { usageError } from './exit.js'

/** When a command must be told to end, and when it is made to, counted back from the deadline of its lease. */
export interface Plan {
  /** From TERM to KILL. */
  readonly graceMs: number
  /** From KILL to the deadline: for the kernel to end everything, and for our own timers to be late. */
  readonly marginMs: number
  /** How often the clock is looked at when no moment is due: timers may be late after a pause of the machine. */
  readonly lookEveryMs: number
}

/** Long enough to save one's work, short enough that a renewal may fail once before TERM. */
const defaultGraceMs = (ttlMs: number): number => Math.min(5_000, Math.floor(ttlMs / 5))
/**
 * A family of a few processes is dead within 10 ms. Of 500 processes on two cores, all were stopped within 50 ms, so
 * that none could do anything more, and all dead after 140 ms.
 */
const marginOf = (ttlMs: number): number => Math.min(250, Math.max(25, Math.floor(ttlMs / 20)))

/**
 * One renewal may fail, and be repeated, before the command is told to end. The keeper sends a renewal after
 * `renewEveryMs`, gives it up after `callTimeoutMs`, and sends the next a quarter of `renewEveryMs` later.
 */
export function planOf(ttlMs: number, givenGraceMs: number | undefined): Plan {
  const graceMs = givenGraceMs ?? defaultGraceMs(ttlMs)
  const marginMs = marginOf(ttlMs)
  const renewEveryMs = DEFAULTS.renewEveryMs(ttlMs)
  const retried = renewEveryMs + DEFAULTS.callTimeoutMs(ttlMs) + Math.floor(renewEveryMs / 4)
  const longest = Math.floor(deadlineOf(0, ttlMs, DEFAULTS)) - marginMs - retried - 1
  if (graceMs > longest) {
    const ttl = formatDuration(ttlMs)
    if (longest < 0 || givenGraceMs === undefined) {
      throw usageError(
        `--ttl ${ttl} is too short to renew a lease and to end a command in time; use a --ttl of 1s or more`,
      )
    }
    throw usageError(
      `--grace ${formatDuration(graceMs)} is too long for --ttl ${ttl}: a renewal that fails is repeated ${formatDuration(retried)} after the last one, ` +
        `and TERM must not come before that; use a --grace of at most ${longest}ms, or a longer --ttl`,
    )
  }
  return { graceMs, marginMs, lookEveryMs: Math.max(5, Math.min(100, Math.floor(ttlMs / 20))) }
}

/** What the clock says: nothing yet, end it, or make it end. */
export function stepAt(now: number, deadline: number, plan: Plan): 'wait' | 'terminate' | 'kill' {
  const killAt = deadline - plan.marginMs
  if (now >= killAt) return 'kill'
  return now >= killAt - plan.graceMs ? 'terminate' : 'wait'
}
