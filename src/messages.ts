import { AcquireTimeoutError, LeaseError, LeaseLostError, StoreUnavailableError } from './errors.js'
import type { LossReason, Store } from './store.js'

/** The words of errors that are made in more than one place. */

export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Where a store is, for people. */
export const placeOf = (store: Store): string => store.location ?? store.name

export function unavailable(store: Store, what: string, error: unknown): StoreUnavailableError {
  const [place, text] = [placeOf(store), textOf(error)]
  // Some stores say themselves where they are; once is enough.
  const why = text.startsWith(place) ? text.slice(place.length).replace(/^:? /, '') : text
  return new StoreUnavailableError(`${place} could not ${what}: ${why}`, {}, { cause: error })
}

export function notReadyError(
  store: Store,
  key: string,
  { why, retryAfterMs }: { readonly why: string; readonly retryAfterMs: number },
): StoreUnavailableError {
  const name = JSON.stringify(key)
  const message = `${placeOf(store)} is not ready to grant ${name}: ${why} (ask again in ${retryAfterMs} ms)`
  return new StoreUnavailableError(message, { notReady: { why, retryAfterMs } })
}

/** `byUs`: this process holds it itself. */
export function heldError(
  facts: {
    readonly key: string
    readonly holder: string | undefined
    readonly waitedMs: number
    readonly attempts: number
  },
  byUs: boolean,
): AcquireTimeoutError {
  const { key, holder, waitedMs, attempts } = facts
  const by = holder === undefined ? '' : ` by ${holder}`
  const own = byUs ? '; this process holds it itself, and leases are not re-entrant' : ''
  const message = `${JSON.stringify(key)} is held${by}; waited ${waitedMs} ms, asked ${attempts} times${own}`
  return new AcquireTimeoutError(message, facts)
}

/** For `close`: these could not be released. */
export function lingeringError(keys: readonly string[]): StoreUnavailableError {
  const names = keys.map((key) => JSON.stringify(key))
  const errors = names.map((name) => new LeaseError('ERR_LEASE_UNAVAILABLE', `no answer to the release of ${name}`))
  const message = `could not release ${names.join(', ')}: they may linger up to their TTL`
  return new StoreUnavailableError(message, { errors })
}

const BECAUSE: Record<LossReason, string> = {
  expired: 'its deadline passed without a renewal',
  taken: 'another owner holds the key (it may have been freed by force)',
  missing: 'the store no longer has it (freed by force, deleted, flushed, or restarted without its memory)',
  session: 'the session that carried it ended',
  revoked: 'it was revoked',
  'max-hold': 'maxHoldMs passed',
  closed: 'its Leases was closed',
}

export interface LossFacts {
  readonly key: string
  readonly fence: bigint
  readonly reason: LossReason
  readonly heldForMs: number
  readonly lateByMs: number
}

/** `lastError`: why the last renewal gave no verdict, where one did not. */
export function lostError(facts: LossFacts, lastError?: unknown): LeaseLostError {
  const { key, fence, reason, heldForMs, lateByMs } = facts
  const late = lateByMs >= 20 ? `; noticed ${Math.round(lateByMs)} ms late: this process was blocked or paused` : ''
  const failed =
    reason === 'expired' && lastError !== undefined ? `; the last renewal failed: ${textOf(lastError)}` : ''
  const lease = `the lease on ${JSON.stringify(key)} (fence ${fence})`
  const message = `lost ${lease} after ${Math.round(heldForMs)} ms: ${BECAUSE[reason]}${late}${failed}`
  return new LeaseLostError(message, facts, lastError === undefined ? {} : { cause: lastError })
}

/** For who asks something of a lease that it has let go. */
export function releasedError({ key, fence }: { readonly key: string; readonly fence: bigint }): LeaseLostError {
  const message = `the lease on ${JSON.stringify(key)} (fence ${fence}) was released`
  return new LeaseLostError(message, { key, fence, reason: 'closed', heldForMs: 0, lateByMs: 0 })
}

/** What `run` rejects with when the work returned although its lease was lost. */
export function lostWithResult(lost: LeaseLostError, result: unknown): LeaseLostError {
  return new LeaseLostError(
    `${lost.message}; the work had returned a result all the same`,
    { ...lost, result },
    { cause: lost.cause },
  )
}
