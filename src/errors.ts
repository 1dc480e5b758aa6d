import type { LossReason } from './store.js'

/** Base of every error of this package. `code` is stable; messages are for people and may change. */
export class LeaseError extends Error {
  readonly code: string
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** The key is held by another, and the wait (if any) has ended. */
export class AcquireTimeoutError extends LeaseError {
  readonly key: string
  /** The label of the holder, where known. */
  readonly holder: string | undefined
  readonly waitedMs: number
  readonly attempts: number
  constructor(message: string, facts: { key: string; holder: string | undefined; waitedMs: number; attempts: number }) {
    super('ERR_LEASE_HELD', message)
    this.key = facts.key
    this.holder = facts.holder
    this.waitedMs = facts.waitedMs
    this.attempts = facts.attempts
  }
}

/** The lease is no longer ours; work after this moment is not protected. */
export class LeaseLostError extends LeaseError {
  readonly key: string
  readonly fence: bigint
  readonly reason: LossReason
  /** How long it was held, in ms. */
  readonly heldForMs: number
  /** How long after the deadline the loss was noticed, in ms; more than 0 means the process was blocked or paused. */
  readonly lateByMs: number
  /** From `run`: what the work returned although its lease was lost. */
  readonly result: unknown
  constructor(
    message: string,
    facts: { key: string; fence: bigint; reason: LossReason; heldForMs: number; lateByMs: number; result?: unknown },
    options?: ErrorOptions,
  ) {
    super('ERR_LEASE_LOST', message, options)
    this.key = facts.key
    this.fence = facts.fence
    this.reason = facts.reason
    this.heldForMs = facts.heldForMs
    this.lateByMs = facts.lateByMs
    this.result = facts.result
  }

  /** Fences as text: JSON has no integers beyond 2^53. */
  toJSON(): Record<string, unknown> {
    const { name, code, message, key, fence, reason, heldForMs, lateByMs } = this
    return { name, code, message, key, fence: String(fence), reason, heldForMs, lateByMs }
  }
}

/** The store gave no verdict. `ERR_LEASE_NOT_READY`: it answers, but must not grant yet. */
export class StoreUnavailableError extends LeaseError {
  /** Why the store is not ready, and for how long; only with `ERR_LEASE_NOT_READY`. */
  readonly why: string | undefined
  readonly retryAfterMs: number | undefined
  /** One error per part of the request, where there are several (members of a quorum, leases that were closed). */
  readonly errors: readonly unknown[]
  constructor(
    message: string,
    facts: { notReady?: { why: string; retryAfterMs: number }; errors?: readonly unknown[] } = {},
    options?: ErrorOptions,
  ) {
    super(facts.notReady ? 'ERR_LEASE_NOT_READY' : 'ERR_LEASE_UNAVAILABLE', message, options)
    this.why = facts.notReady?.why
    this.retryAfterMs = facts.notReady?.retryAfterMs
    this.errors = facts.errors ?? []
  }
}

/** A setting makes the promise impossible: which, seen how, what to do. */
export class StoreUnsafeError extends LeaseError {
  constructor(message: string, options?: ErrorOptions) {
    super('ERR_LEASE_UNSAFE', message, options)
  }
}

/** A write carried a fence below the one that the resource has seen. Nothing was written. */
export class StaleFenceError extends LeaseError {
  readonly resource: string
  readonly presented: bigint
  readonly current: bigint
  constructor(facts: { resource: string; presented: bigint; current: bigint }) {
    super(
      'ERR_LEASE_STALE_FENCE',
      `fence ${facts.presented} is stale for ${JSON.stringify(facts.resource)}: a holder with fence ${facts.current} came after; nothing was written`,
    )
    this.resource = facts.resource
    this.presented = facts.presented
    this.current = facts.current
  }

  toJSON(): Record<string, unknown> {
    const { name, code, message, resource, presented, current } = this
    return { name, code, message, resource, presented: String(presented), current: String(current) }
  }
}

/**
 * How a {@link Store} says "no verdict". `none`: certainly not executed · `unknown`: may have been, or may still be ·
 * `released`: the store sent a release for this owner while answering, so the owner must never be used again.
 */
export class StoreError extends Error {
  readonly effect: 'none' | 'unknown' | 'released'
  constructor(message: string, effect: 'none' | 'unknown' | 'released', options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.effect = effect
  }
}
