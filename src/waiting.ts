import { type Attempt, attempt, type Grant, Owner } from './attempt.js'
import { backoff } from './backoff.js'
import { StoreUnsafeError } from './errors.js'
import { emit } from './events.js'
import { listen } from './listen.js'
import { heldError, notReadyError, unavailable } from './messages.js'
import type { Wish } from './options.js'
import { Scope } from './scope.js'
import type { AcquireOutcome, Cancellation, Claim, Key, Store, Watch } from './store.js'
import { deadlineOf } from './validity.js'

/** How often a waiter asks when nothing tells it to. With notifications the poll is only a safety net. */
const POLL = { baseMs: 20, capMs: 250 }
const POLL_BESIDE_HINTS = { baseMs: 500, capMs: 4000 }
const POLL_UNAVAILABLE = { baseMs: 50, capMs: 1000 }
/** Hints may come in storms; questions do not. */
const MIN_GAP_MS = 2

/** What an acquisition needs of its `Leases`. */
export interface Acquirer {
  /** Gives an owner's claim back in the background. */
  retire(owner: Owner, wish: Wish): void
  /** This process has the key. */
  holds(name: string): boolean
}

type Answer = { kind: 'held' | 'not-ready'; outcome: AcquireOutcome } | { kind: 'unavailable'; error: unknown }

/** One acquisition from its first question to its grant, or to the error that ends it. */
export class Acquisition {
  readonly #store: Store
  readonly #wish: Wish
  readonly #key: Key
  readonly #startedAt: number
  readonly #endsAt: number
  readonly #cancelled = new Scope()
  readonly #acquirer: Acquirer
  #owner: Owner
  /** The present owner has a place in line. */
  #queued = false
  #attempts = 0
  #askedAt = Number.NEGATIVE_INFINITY
  #reached = false
  #holder: string | undefined
  #hinted = false
  #wake: (() => void) | undefined
  #watch: Watch | undefined
  #armed = false
  #polls = 0

  constructor(store: Store, wish: Wish, key: Key, acquirer: Acquirer) {
    this.#store = store
    this.#wish = wish
    this.#key = key
    this.#acquirer = acquirer
    this.#startedAt = this.#now()
    this.#endsAt = this.#startedAt + wish.waitMs
    this.#owner = this.#freshOwner()
  }

  /** Ends it: `run` rejects with the reason. */
  cancel(reason: unknown): void {
    this.#cancelled.abort(reason)
  }

  get cancelled(): Cancellation {
    return this.#cancelled
  }

  /** @throws the reason of the cancelling, or the error that the last answer decides. */
  async run(): Promise<{ readonly owner: Owner; readonly grant: Grant }> {
    let settled = false
    try {
      for (;;) {
        const result = await this.#ask()
        if (!this.#cancelled.aborted) this.#report(result)
        const answer = this.#judge(result)
        if ('grant' in answer) {
          settled = true
          return { owner: this.#owner, grant: answer.grant }
        }
        if (this.#cancelled.aborted) throw this.#cancelled.reason
        if (answer.kind === 'unavailable' && (!this.#reached || answer.error instanceof StoreUnsafeError))
          throw this.#errorFor(answer)
        if (this.#now() >= this.#endsAt) throw this.#errorFor(answer)
        await this.#pause(answer)
        if (this.#cancelled.aborted) throw this.#cancelled.reason
      }
    } finally {
      this.#watch?.close()
      if (!settled && !this.#owner.retired && (this.#queued || this.#owner.suspect)) this.#retire(this.#owner)
    }
  }

  #ask(): Promise<Attempt> {
    const { clock } = this.#wish.environment
    const { ttlMs, lockDelayMs, minHoldMs, fenceFloor, label, life, callTimeoutMs } = this.#wish
    if (this.#owner.retired) {
      this.#owner = this.#freshOwner()
      this.#queued = false
    }
    const owner = this.#owner
    const queue = this.#wish.waitMs > 0
    const claim: Claim = {
      key: this.#key,
      owner: owner.owner,
      ttlMs,
      lockDelayMs,
      minHoldMs,
      fenceFloor,
      queue,
      label,
      life,
    }
    this.#askedAt = this.#attempts === 0 ? this.#startedAt : clock.now()
    this.#attempts++
    const budgetMs = Math.max(this.#endsAt - this.#askedAt, 0) + callTimeoutMs
    const limits = { callTimeoutMs, budgetMs, signal: this.#cancelled }
    return attempt(this.#store, clock, claim, owner, limits, () => this.#retire(owner))
  }

  #retire(owner: Owner): void {
    this.#acquirer.retire(owner, this.#wish)
  }

  #judge(result: Attempt): { grant: Grant } | Answer {
    if (result.kind === 'unavailable') {
      if (result.suspect || result.spent) this.#letGo()
      return { kind: 'unavailable', error: result.error }
    }
    this.#reached = true
    const { outcome, sentAt } = result
    if (outcome.kind === 'granted') {
      // Nobody is handed a lease whose deadline has passed, nor one after it was cancelled (B222).
      const answeredAt = this.#now()
      if (!this.#cancelled.aborted && answeredAt < deadlineOf(sentAt, outcome.ttlMs, this.#wish)) {
        const { ttlMs, fence } = outcome
        const waitedMs = sentAt - this.#startedAt
        return { grant: { sentAt, answeredAt, ttlMs, fence, waitedMs, attempts: this.#attempts } }
      }
      this.#retire(this.#owner)
      return { kind: 'unavailable', error: new Error('the grant came too late to be used') }
    }
    if (outcome.kind === 'held') {
      this.#holder = outcome.holder
      this.#queued = outcome.queued
      // The store may have released this owner while answering: never ask with it again (I4).
      if (!outcome.queued) this.#letGo()
      this.#listen()
    } else if (this.#owner.suspect) {
      this.#letGo()
    }
    return { kind: outcome.kind, outcome }
  }

  /** Never asks with this owner again; what may stand for it in the store is given back (I11). */
  #letGo(): void {
    if (this.#owner.suspect || this.#cancelled.aborted) this.#retire(this.#owner)
    else this.#owner.retired = true
  }

  /** A release between our question and our listening must not go unheard: once armed, ask again (B051). */
  #listen(): void {
    if (this.#watch || this.#wish.waitMs === 0) return
    const hint = () => {
      this.#hinted = true
      this.#wake?.()
    }
    this.#watch = listen(this.#store, this.#owner, hint, () => {
      this.#armed = true
      hint()
    })
  }

  /** Until a hint, the time that the store named, a capped poll, or the end of the wait: whichever comes first. */
  #pause(answer: Answer): Promise<void> {
    const { clock } = this.#wish.environment
    const ms = this.#hinted ? this.#askedAt + MIN_GAP_MS - this.#now() : this.#pollMs(answer)
    if (ms <= 0 && this.#hinted) return Promise.resolve(this.#forgetHint())
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel()
        this.#wake = undefined
        this.#cancelled.removeEventListener('abort', wake)
        if (this.#hinted) this.#forgetHint()
        resolve()
      }
      const timer = clock.timer(Math.max(Math.min(ms, this.#endsAt - this.#now()), 0), wake, { keepAlive: true })
      if (!this.#hinted) this.#wake = wake
      this.#cancelled.addEventListener('abort', wake)
    })
  }

  #forgetHint(): void {
    this.#hinted = false
    this.#polls = 0
  }

  #pollMs(answer: Answer): number {
    const bounds = answer.kind === 'unavailable' ? POLL_UNAVAILABLE : this.#armed ? POLL_BESIDE_HINTS : POLL
    const poll = backoff(this.#polls++, this.#wish.environment.random.next(), bounds)
    const named = 'outcome' in answer && 'retryAfterMs' in answer.outcome ? answer.outcome.retryAfterMs : undefined
    return named === undefined ? poll : Math.min(poll, Math.max(named, 0) + 1)
  }

  #errorFor(answer: Answer): Error {
    if (answer.kind === 'unavailable') {
      if (answer.error instanceof StoreUnsafeError) return answer.error
      return unavailable(this.#store, `acquire ${JSON.stringify(this.#key.name)}`, answer.error)
    }
    const { outcome } = answer
    const { name } = this.#key
    if (outcome.kind === 'not-ready') return notReadyError(this.#store, name, outcome)
    const waitedMs = Math.round(this.#now() - this.#startedAt)
    const facts = { key: name, holder: this.#holder, waitedMs, attempts: this.#attempts }
    return heldError(facts, this.#acquirer.holds(name))
  }

  #report(result: Attempt): void {
    emit(this.#wish.observers, 'attempt', () => {
      const about = {
        type: 'attempt' as const,
        namespace: this.#key.namespace,
        key: this.#key.name,
        store: this.#store.name,
        durationMs: this.#now() - this.#askedAt,
        attempt: this.#attempts,
      }
      if (result.kind === 'unavailable') return { ...about, outcome: 'unavailable' as const, error: result.error }
      const { kind, ...facts } = result.outcome
      return { ...about, ...facts, outcome: kind }
    })
  }

  #freshOwner(): Owner {
    return new Owner(this.#key, this.#wish.environment.random.id())
  }

  #now(): number {
    return this.#wish.environment.clock.now()
  }
}
