/** How long one call tries at a file that others keep locked, and how it says that this was in vain. */
import { StoreError } from '../../errors.js'

/**
 * A part of the lease's TTL that leaves time to ask again, so that the caller learns that nothing was done rather than
 * give up not knowing. A process that hardly gets to run has not tried yet.
 */
export const PATIENCE = { share: 1 / 8, leastMs: 100, mostMs: 4_000, leastTries: 20 }

export const patienceOf = (ttlMs: number): number =>
  Math.min(Math.max(ttlMs * PATIENCE.share, PATIENCE.leastMs), PATIENCE.mostMs)

/** Certainly nothing was done. */
export class LockedError extends StoreError {
  constructor(path: string, waitedMs: number, tries: number, cause?: unknown) {
    const message = `${path} was locked by another process for ${Math.round(waitedMs)} ms (${tries} tries); nothing was changed`
    super(message, 'none', { cause })
  }
}
