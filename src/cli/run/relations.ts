/** What `run` asks for, held against what the store can do and what it grants. */
import type { Store, StoreTraits } from '../../store.js'
import { usageError } from '../exit.js'
import { writtenDuration } from '../text/duration.js'
import { longestGraceMs, type Plan, planWith } from './plan.js'

export interface Lengths {
  readonly ttlMs: number
  /** What was given; `undefined` for the default. */
  readonly graceMs: number | undefined
  readonly lockDelayMs: number
  readonly minHoldMs: number
}

/** @throws CliError (exit 64) naming the flag, what the store would have to do, and what to do instead. */
export function refuseWhatStoreCannot(
  lengths: Lengths,
  store: Pick<Store, 'name'> & { traits: StoreTraits },
  longer = '',
): void {
  const { name, traits } = store
  const { ttlMs, lockDelayMs, minHoldMs } = lengths
  if (!traits.detachable)
    throw usageError(`run needs a store whose leases outlive a dead process, and ${name} has none; use sqlite:path`)
  for (const [flag, ms] of [
    ['--lock-delay', lockDelayMs],
    ['--min-hold', minHoldMs],
  ] as const) {
    if (ms === 0 || traits.lockDelay) continue
    throw usageError(
      `${flag} must be 0s on ${name}, which cannot keep a key taken that nobody holds, but got ${writtenDuration(ms)}; leave it out, or use sqlite:path`,
    )
  }
  const { ttlMinMs, ttlMaxMs } = traits
  if (ttlMs < ttlMinMs || ttlMs > ttlMaxMs)
    throw usageError(
      `--ttl must lie between ${writtenDuration(ttlMinMs)} and ${writtenDuration(ttlMaxMs)} on ${name}, but got ${writtenDuration(ttlMs)}${ttlMs > ttlMaxMs ? longer : ''}`,
    )
  if (ttlMs + lockDelayMs > ttlMaxMs)
    throw usageError(
      `--lock-delay must be at most ${writtenDuration(ttlMaxMs - ttlMs)} with --ttl ${writtenDuration(ttlMs)} on ${name} ` +
        `(${writtenDuration(ttlMaxMs)} together), but got ${writtenDuration(lockDelayMs)}${longer}`,
    )
  if (minHoldMs > ttlMaxMs)
    throw usageError(
      `--min-hold must be at most ${writtenDuration(ttlMaxMs)} on ${name}, but got ${writtenDuration(minHoldMs)}${longer}`,
    )
}

/**
 * The plan for the TTL that was granted, where that is shorter than the one asked for: everything must fit before the
 * deadline that it really gives.
 * @throws CliError (exit 64) when it does not: the command must not start then.
 */
export function planFor(grantedMs: number, { ttlMs, graceMs }: Lengths, asked: Plan): Plan {
  if (grantedMs >= ttlMs) return asked
  const longestMs = longestGraceMs(grantedMs, ttlMs)
  const [granted, ttl] = [grantedMs, ttlMs].map(writtenDuration)
  const why = `the store granted only ${granted} of --ttl ${ttl}`
  if (longestMs < 0)
    throw usageError(`${why}, too short to renew the lease and to end the command in time; ask for a --ttl it grants`)
  if (graceMs !== undefined && graceMs > longestMs)
    throw usageError(
      `--grace must be at most ${writtenDuration(longestMs)} here, since ${why}, but got ${writtenDuration(graceMs)}`,
    )
  return planWith(grantedMs, Math.min(asked.graceMs, longestMs))
}
