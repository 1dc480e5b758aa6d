import type { Environment } from '../environment.js'
import type { Claim, Key, Store } from '../store.js'

/** Registers one test, as `test` of `node:test`, Vitest, Jest or Mocha does. */
export interface TestFunction {
  (name: string, run: () => Promise<void>): unknown
  /** Shows a test as skipped. Without it a skipped check is only in what `conformance` resolves with. */
  readonly skip?: (name: string, run: () => Promise<void>) => unknown
}

/** How the suite reaches one backend. `name`, `test`, `open` and `wait` are enough for a first run. */
export interface Harness {
  /** Comes before the name of every test. */
  readonly name: string
  readonly test: TestFunction
  /** A new, independent client of the same backend each time. The suite closes every one. */
  open(): Promise<Store>
  /** Lets time pass for the backend: by waiting, or by moving a virtual clock. One call at a time. */
  wait(ms: number): Promise<void>
  /**
   * Asks the backend itself, not our client: what it would act on now for this key; `null` when the key is free.
   * `owner` and `fence` where the backend can tell; `owner: null` is a tombstone.
   */
  truth?(key: Key): Promise<{ readonly owner?: string | null; readonly fence?: bigint } | null>
  /**
   * Takes the claim in a process of its own and kills that with -9 while it holds; resolves once the process is dead.
   * Empty `life.pids` stand for the pid of that process. Leave it out where processes do not matter.
   */
  kill?(claim: Claim): Promise<void>
  /** How long after `kill` the key may still be taken, in ms, where the backend sees a death before the TTL ends. */
  readonly deathSeenWithinMs?: number
  /**
   * A client over a link that can lose replies after the backend has acted on the request. Default: a wrapper around a
   * client, which drops the answer; a real link (a TCP proxy) also tests the client's own handling of it.
   */
  lostReply?(): Promise<LossyLink>
  /** Checks that do not apply, by name (without the harness's), each with the reason. An unknown name is an error. */
  readonly skip?: readonly Skip[]
  /** A TTL short enough to wait for and long enough to act within, in ms. Default 400, or the shortest there is. */
  readonly ttlMs?: number
  /** How late the backend may free what has ended, in ms. Default 100. */
  readonly slackMs?: number
  /** The clock and randomness of the tests and of the core under test. Default: the system's. */
  readonly environment?: Environment
}

export interface Skip {
  readonly test: string
  readonly reason: string
}

export interface LossyLink {
  readonly store: Store
  /** From now on requests arrive and replies do not. */
  lose(): void
  /** From now on replies arrive again. */
  heal(): void
}
