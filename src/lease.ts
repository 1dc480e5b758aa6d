import { inspect } from 'node:util'
import type { LeaseLostError } from './errors.js'
import { releasedError } from './messages.js'
import type { Life } from './store.js'

/** What a lease needs from its `Leases`; see `active-lease.ts` for the working part. */
export interface LeaseCore {
  readonly key: string
  readonly owner: string
  readonly fence: bigint
  readonly ttlMs: number
  readonly signal: AbortSignal
  remainingMs(): number
  /** Looks at the clock and ends the lease if its time is over. */
  look(): void
  readonly lost: LeaseLostError | null
  renew(): Promise<void>
  setLife(life: Life): Promise<void>
  release(): Promise<ReleaseResult>
}

/**
 * `released`: the store freed it for us · `lost`: it was no longer ours · `unknown`: asked, no answer; it may linger up
 * to its TTL.
 */
export type ReleaseResult = 'released' | 'lost' | 'unknown'

/**
 * A lease that was granted. The work it protects must stop when `signal` aborts, and should look at `held` (or call
 * `assertHeld()`) right before each effect: after a pause, code runs before any timer can.
 *
 * The dangerous case: between a check and the effect that follows it the process may be paused for any time. Where
 * that matters, give `fence` to the resource (`holdfast/fencing`).
 */
export class Lease implements AsyncDisposable {
  /** The key, without its namespace. */
  readonly key: string
  /** Greater than every earlier fence of this key in this store. */
  readonly fence: bigint
  /** The TTL that the store granted, in ms. */
  readonly ttlMs: number
  readonly #core: LeaseCore

  constructor(core: LeaseCore) {
    this.key = core.key
    this.fence = core.fence
    this.ttlMs = core.ttlMs
    this.#core = core
  }

  /** The secret that proves ownership to the store: fresh for each lease, hidden from `util.inspect` and JSON. */
  get owner(): string {
    return this.#core.owner
  }

  /** Aborts once, when the lease is lost or its deadline passes; `reason` is a {@link LeaseLostError}. */
  get signal(): AbortSignal {
    this.#core.look()
    return this.#core.signal
  }

  /** Reads the clock now, time in suspend included. False from the deadline on, and after a release. */
  get held(): boolean {
    return this.remainingMs > 0
  }

  /** Milliseconds until the deadline, as of now; 0 when it is not held. */
  get remainingMs(): number {
    this.#core.look()
    return this.#core.remainingMs()
  }

  /** Throws {@link LeaseLostError} unless `held`. */
  assertHeld(): void {
    if (this.held) return
    throw this.#core.lost ?? releasedError(this)
  }

  /**
   * A manual heartbeat (with `heartbeat: false`): restores the whole TTL, counted from now.
   * @throws {LeaseLostError} when it is lost · {@link StoreUnavailableError} when the store gave no verdict: the old
   * deadline stands.
   */
  renew(): Promise<void> {
    return this.#core.renew()
  }

  /**
   * Work has moved to other processes: from now on, whose death may free the lease early (`life` of the options). A
   * manual heartbeat that says so; where it gets no answer, the next one does. With a `lockDelayMs` or a `minHoldMs` no
   * death frees it, whatever is said here.
   * @throws {LeaseLostError} · {@link StoreUnavailableError} as `renew`.
   */
  async setLife(life: Life): Promise<void> {
    return this.#core.setLife(life)
  }

  /** Idempotent. Never throws because of loss. Settles within two call time-outs. */
  release(): Promise<ReleaseResult> {
    return this.#core.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** Without the owner; the fence as text, because JSON has no integers beyond 2^53. */
  toJSON(): Record<string, unknown> {
    return { key: this.key, fence: String(this.fence), ttlMs: this.ttlMs, remainingMs: this.remainingMs }
  }

  [inspect.custom](): string {
    return `Lease ${JSON.stringify(this.key)} { fence: ${this.fence}n, remainingMs: ${Math.round(this.remainingMs)} }`
  }
}
