/** Whose clock, and is it over? Pure. */

/** A lease as it is stored. Milliseconds throughout. */
export interface LeaseRow {
  /** `null` on a tombstone, which nothing matches. */
  readonly owner: string | null
  readonly fence: bigint
  /** With the fence, the version of the row: whatever moves its end adds one. */
  readonly renewals: number
  readonly state: 'held' | 'revoked' | 'kept'
  readonly label: string | null
  /** Identity of the host clock that `expires` and `granted` are read on. */
  readonly clock: string
  readonly expires: number
  /** From the writing of this version to its end: how long others, who cannot read that clock, have to watch it. */
  readonly term: number
  readonly granted: number
  readonly life: string | null
  /** On the observer's clock: when this version was first seen by anybody with that clock. */
  readonly since: number | null
}

export interface Verdict {
  readonly expired: boolean
  /** Until it ends if nobody renews it, or until we have watched it long enough. */
  readonly remainingMs: number
  /** We cannot read its clock, so it must be watched. */
  readonly foreign: boolean
}

/** Two clocks may run at different rates: watch this much longer than the term, and for the granularity of timers. */
const WATCH_RATIO = 1.02
const WATCH_MARGIN_MS = 50

/**
 * `now` on the observer's host clock, read after the row. A row of our own clock that would end later than its term
 * from now was not written on our clock, whatever it says (a snapshot of a machine, restored): it is watched, too.
 */
export function judge(row: LeaseRow, now: number, observer: string): Verdict {
  const left = row.expires - now
  if (row.clock === observer && left <= row.term)
    return { expired: left <= 0, remainingMs: Math.max(left, 0), foreign: false }
  const span = row.term * WATCH_RATIO + WATCH_MARGIN_MS
  const watched = isSighted(row, now) ? now - row.since : 0
  return { expired: watched >= span, remainingMs: Math.max(span - watched, 0), foreign: true }
}

/** A sighting from the future is none: our clock went back, and counting begins anew. */
export const isSighted = (row: LeaseRow, now: number): row is LeaseRow & { since: number } =>
  row.since !== null && row.since <= now

export const sameVersion = (
  a: { fence: bigint; renewals: number } | null,
  b: { fence: bigint; renewals: number },
): boolean => a !== null && a.fence === b.fence && a.renewals === b.renewals

/** The largest integer that SQLite can keep. */
export const MAX_FENCE = 2n ** 63n - 1n

/** Greater than every fence of this file, and than those of a file that was here before, as far as clocks tell. */
export function nextFence(stored: bigint, floor: bigint, wallMs: number): bigint {
  const micros = Number.isFinite(wallMs) ? BigInt(Math.floor(wallMs * 1000)) : 0n
  return [floor, micros].reduce((most, one) => (one > most ? one : most), stored + 1n)
}
