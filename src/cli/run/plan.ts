import { DEFAULTS } from '../../options.js'
import { deadlineOf } from '../../validity.js'
import { usageError } from '../exit.js'
import { formatDuration, writtenDuration } from '../text/duration.js'

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
const marginOf = (ttlMs: number): number => Math.min(500, Math.max(25, Math.floor(ttlMs / 20)))

/**
 * From a renewal to the next one, where that one fails and is repeated: as `DEFAULTS` of the library say. The rhythm is
 * that of the TTL that was asked for; where less was granted, the first renewal alone is sooner.
 */
function retriedAfterMs(ttlMs: number, askedMs = ttlMs): number {
  const renewEveryMs = DEFAULTS.renewEveryMs(askedMs)
  const firstMs = Math.min(renewEveryMs, Math.ceil(ttlMs / 3))
  return firstMs + DEFAULTS.callTimeoutMs(askedMs) + Math.floor(renewEveryMs / 4)
}

/** Below 0 when there is no time for any. */
export const longestGraceMs = (ttlMs: number, askedMs = ttlMs): number =>
  Math.floor(deadlineOf(0, ttlMs, DEFAULTS)) - marginOf(ttlMs) - retriedAfterMs(ttlMs, askedMs) - 1

/** For a grace that fits. */
export const planWith = (ttlMs: number, graceMs: number): Plan => ({
  graceMs,
  marginMs: marginOf(ttlMs),
  lookEveryMs: Math.max(5, Math.min(100, Math.floor(ttlMs / 20))),
})

/** The TTL from which on the grace fits; the parts are rounded, so a shorter one may fit here and there. */
function leastTtlMs(graceOf: (ttlMs: number) => number): number {
  let ttlMs = 4 * graceOf(0) + 2_000
  while (graceOf(ttlMs - 1) <= longestGraceMs(ttlMs - 1)) ttlMs--
  return ttlMs
}

/**
 * One renewal may fail, and be repeated, before the command is told to end. The keeper sends a renewal after
 * `renewEveryMs`, gives it up after `callTimeoutMs`, and sends the next a quarter of `renewEveryMs` later.
 */
export function planOf(ttlMs: number, givenGraceMs: number | undefined): Plan {
  const graceOf = givenGraceMs === undefined ? defaultGraceMs : () => givenGraceMs
  const graceMs = graceOf(ttlMs)
  const longest = longestGraceMs(ttlMs)
  if (graceMs > longest) throw refusal(ttlMs, givenGraceMs, longest, leastTtlMs(graceOf))
  return planWith(ttlMs, graceMs)
}

function refusal(ttlMs: number, givenGraceMs: number | undefined, longestMs: number, leastMs: number): Error {
  const [ttl, least] = [ttlMs, leastMs].map(writtenDuration)
  if (longestMs < 0 || givenGraceMs === undefined) {
    const grace = givenGraceMs ? ` with --grace ${writtenDuration(givenGraceMs)}` : ''
    return usageError(
      `--ttl must be at least ${least}${grace}, to renew the lease and to end the command in time, but got ${ttl}`,
    )
  }
  return usageError(
    `--grace must be at most ${writtenDuration(longestMs)} with --ttl ${ttl}, but got ${writtenDuration(givenGraceMs)}: a renewal that fails is repeated ` +
      `${formatDuration(retriedAfterMs(ttlMs))} after the last one, and TERM must not come before that; or use a --ttl of at least ${least}`,
  )
}

/** What the clock says: nothing yet, end it, or make it end. */
export function stepAt(now: number, deadline: number, plan: Plan): 'wait' | 'terminate' | 'kill' {
  const killAt = deadline - plan.marginMs
  if (now >= killAt) return 'kill'
  return now >= killAt - plan.graceMs ? 'terminate' : 'wait'
}
