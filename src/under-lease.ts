import type { ActiveLease } from './active-lease.js'
import { StoreUnavailableError } from './errors.js'
import { Lease, type ReleaseResult } from './lease.js'
import { lostWithResult } from './messages.js'

/** What `run` protects. It should stop when `lease.signal` aborts. */
export type Work<T> = (lease: Lease) => T | PromiseLike<T>

/** Works, then releases. Success is never reported for work that was not protected to its end (I13). */
export async function underLease<T>(active: ActiveLease, work: Work<T>): Promise<T> {
  let result: T
  try {
    result = await work(new Lease(active))
  } catch (error) {
    attach(error, await active.release(), active)
    throw error
  }
  active.look()
  const { lost } = active
  const outcome = await active.release()
  if (lost || outcome === 'lost') throw lostWithResult(lost ?? active.missing, result)
  return result
}

/** The work's own error is what the caller gets; what happened to the lease is attached, never put in its place. */
function attach(error: unknown, outcome: ReleaseResult, lease: ActiveLease): void {
  if (outcome === 'released' || typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  const releaseError = outcome === 'lost' ? (lease.lost ?? lease.missing) : lingering(lease)
  if (error === releaseError || 'releaseError' in error) return
  Object.defineProperty(error, 'releaseError', { value: releaseError, configurable: true, writable: true })
}

const lingering = ({ key }: ActiveLease) =>
  new StoreUnavailableError(`no answer to the release of ${JSON.stringify(key)}: it may linger up to its TTL`)
