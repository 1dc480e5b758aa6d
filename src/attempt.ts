import { inspect } from 'node:util'
import type { Clock, Timer } from './environment.js'
import { StoreError, StoreUnsafeError } from './errors.js'
import { CallScope } from './scope.js'
import type { AcquireOutcome, Cancellation, Claim, ClaimRef, Key, Store } from './store.js'

/**
 * An owner token lives while no release has been sent for it (I4): a late release must never hit a living owner.
 * Once `retired`, a grant that still arrives for it is given back.
 */
export class Owner implements ClaimRef {
  readonly key: Key
  readonly owner: string
  retired = false
  /** A claim of unknown fate may stand in the store: letting go of the owner takes a release. */
  suspect = false
  constructor(key: Key, owner: string) {
    this.key = key
    this.owner = owner
  }
}

/** A claim that was granted in time. */
export interface Grant {
  readonly sentAt: number
  /** When the grant had arrived: by then the store had counted at most from here. */
  readonly answeredAt: number
  readonly ttlMs: number
  readonly fence: bigint
  readonly waitedMs: number
  readonly attempts: number
}

export type Attempt =
  | { readonly kind: 'answered'; readonly sentAt: number; readonly outcome: AcquireOutcome }
  /** No verdict. `suspect`: the claim may stand in the store, so its owner must be released and retired. */
  | { readonly kind: 'unavailable'; readonly error: unknown; readonly suspect: boolean; readonly spent: boolean }

export interface Limits {
  readonly callTimeoutMs: number
  /** No question is asked, and none waited for, beyond this. */
  readonly budgetMs: number
  /** Cancels. */
  readonly signal: Cancellation
}

/**
 * Asks the store for the key: once, and only after an unknown outcome once more with the same owner. A grant that
 * comes late for the first question still counts, by the time that question was sent (I1).
 */
export function attempt(
  store: Store,
  clock: Clock,
  claim: Claim,
  owner: Owner,
  limits: Limits,
  onLateGrant: () => void,
): Promise<Attempt> {
  return new Promise((resolve) => new Questions(store, clock, claim, owner, limits, onLateGrant, resolve).begin())
}

class Questions {
  readonly #store: Store
  readonly #clock: Clock
  readonly #claim: Claim
  readonly #owner: Owner
  readonly #limits: Limits
  readonly #onLateGrant: () => void
  readonly #resolve: (result: Attempt) => void
  readonly #scope = new CallScope()
  readonly #cancel = () => {
    this.#unavailable(this.#limits.signal.reason, true)
    this.#scope.abort()
  }
  #giveUpAt = 0
  #done = false
  /** The number of the question whose answer is waited for: an earlier one can only bring a grant. */
  #asked = 0
  #pending = 0
  #timer: Timer | undefined
  #end: Timer | undefined

  constructor(
    store: Store,
    clock: Clock,
    claim: Claim,
    owner: Owner,
    limits: Limits,
    onLateGrant: () => void,
    resolve: (result: Attempt) => void,
  ) {
    this.#store = store
    this.#clock = clock
    this.#claim = claim
    this.#owner = owner
    this.#limits = limits
    this.#onLateGrant = onLateGrant
    this.#resolve = resolve
  }

  begin(): void {
    const { budgetMs, signal } = this.#limits
    if (signal.aborted) return this.#cancel()
    signal.addEventListener('abort', this.#cancel)
    const now = this.#clock.now()
    this.#giveUpAt = now + budgetMs
    this.#ask(now)
  }

  #ask(sentAt: number): void {
    const question = ++this.#asked
    const timeoutMs = Math.min(this.#limits.callTimeoutMs, Math.max(this.#giveUpAt - sentAt, 0))
    this.#pending++
    call(() => this.#store.acquire(this.#claim, this.#scope)).then(
      (outcome) => this.#answered(question, sentAt, outcome),
      (error) => {
        this.#settled()
        if (this.#waitsFor(question)) this.#noVerdict(error)
      },
    )
    // The books are kept while the question is on its way.
    const tooLate = () => this.#noVerdict(new StoreError(`no answer within ${Math.round(timeoutMs)} ms`, 'unknown'))
    this.#timer = this.#clock.timer(timeoutMs, tooLate, KEEP_ALIVE)
  }

  #answered(question: number, sentAt: number, outcome: AcquireOutcome): void {
    this.#settled()
    const isWanted = this.#waitsFor(question)
    if (!isAnswer(outcome)) return isWanted ? this.#noVerdict(nonsense('acquire', outcome)) : undefined
    const isGranted = outcome.kind === 'granted'
    if (isWanted || (!this.#done && isGranted)) return this.#finish({ kind: 'answered', sentAt, outcome })
    if (!isGranted) return
    // Nobody waits for it any more; whoever lets go of the owner must give it back.
    this.#owner.suspect = true
    if (this.#owner.retired) this.#onLateGrant()
  }

  #noVerdict(error: unknown): void {
    this.#timer?.cancel()
    const isSecond = this.#asked > 1
    const effect = effectOf(error)
    if (effect !== 'unknown') return this.#unavailable(error, isSecond, isSecond || effect === 'released')
    this.#owner.suspect = true
    const now = this.#clock.now()
    if (!isSecond && now < this.#giveUpAt) return this.#ask(now)
    this.#unavailable(error, true)
  }

  #unavailable(error: unknown, suspect: boolean, spent = suspect): void {
    this.#finish({ kind: 'unavailable', error, suspect, spent })
  }

  #finish(result: Attempt): void {
    this.#done = true
    this.#timer?.cancel()
    this.#limits.signal.removeEventListener('abort', this.#cancel)
    // A question still on its way may bring a grant to give back, for as long as that grant would last.
    if (this.#pending > 0) {
      const { ttlMs, lockDelayMs, minHoldMs } = this.#claim
      this.#end = this.#clock.timer(ttlMs + lockDelayMs + minHoldMs, () => this.#scope.abort())
    }
    this.#resolve(result)
  }

  #settled(): void {
    this.#pending--
    if (this.#pending === 0) this.#end?.cancel()
  }

  #waitsFor(question: number): boolean {
    return !this.#done && question === this.#asked
  }
}

const KEEP_ALIVE = { keepAlive: true } as const

/** A store written in a hurry must not be able to hand out a lease without an end, or without a fence. */
export const isGrant = (outcome: { readonly fence: unknown; readonly ttlMs: unknown }): boolean =>
  typeof outcome.fence === 'bigint' && Number.isFinite(outcome.ttlMs)

const isAnswer = (outcome: AcquireOutcome): boolean =>
  outcome?.kind === 'held' || outcome?.kind === 'not-ready' || (outcome?.kind === 'granted' && isGrant(outcome))

export const nonsense = (operation: string, outcome: unknown) =>
  new StoreError(
    `the store answered nonsense to ${operation}: ${inspect(outcome, { breakLength: Number.POSITIVE_INFINITY })}`,
    'unknown',
  )

export function effectOf(error: unknown): StoreError['effect'] {
  if (error instanceof StoreUnsafeError) return 'none'
  return error instanceof StoreError ? error.effect : 'unknown'
}

/** A store that throws instead of rejecting must not escape our handlers. */
export function call<T>(op: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(op())
  } catch (error) {
    return Promise.reject(error)
  }
}

export type Timed<T> = { readonly value: T } | { readonly error: unknown }

/** One call with our own time-out; never rejects. What comes later is dropped. */
export const timed = <T>(clock: Clock, timeoutMs: number, op: (call: CallScope) => Promise<T>): Promise<Timed<T>> =>
  new Promise((resolve) => ask(clock, timeoutMs, op, new CallScope(), resolve))

/** The same, calling back once. */
export function ask<T>(
  clock: Clock,
  timeoutMs: number,
  op: (call: CallScope) => Promise<T>,
  scope: CallScope,
  done: (answer: Timed<T>) => void,
): void {
  let isDone = false
  const finish = (answer: Timed<T>) => {
    if (isDone) return
    isDone = true
    timer.cancel()
    done(answer)
  }
  call(() => op(scope)).then(
    (value) => finish({ value }),
    (error) => finish({ error }),
  )
  const timer = clock.timer(
    timeoutMs,
    () => {
      finish({ error: new StoreError(`no answer within ${timeoutMs} ms`, 'unknown') })
      scope.abort()
    },
    KEEP_ALIVE,
  )
}
