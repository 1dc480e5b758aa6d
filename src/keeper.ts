import { call, isGrant, nonsense } from './attempt.js'
import type { Clock, Timer, TimerOptions } from './environment.js'
import { StoreError } from './errors.js'
import { CallScope } from './scope.js'
import type { HeldRef, Life, LossReason, RenewOutcome, Store } from './store.js'
import { deadlineOf, type Validity } from './validity.js'

/** Hints about our own claim are answered by at most one renewal in this time. */
const HINT_GAP_MS = 100

const PROMPT: TimerOptions = { prompt: true }
const PROMPT_AND_ALIVE: TimerOptions = { prompt: true, keepAlive: true }

/** What a keeper knows of its lease. Instants are on our clock. */
export interface Beat {
  readonly deadline: number
  /** When to send the next renewal; Infinity without a heartbeat. */
  readonly renewAt: number
}

export interface Rhythm extends Validity {
  readonly renewEveryMs: number
  readonly callTimeoutMs: number
  readonly heartbeat: boolean
}

/** A grant, or a renewal sent at `sentAt`, succeeded. The deadline only ever moves forward. */
export function granted(beat: Beat | null, sentAt: number, ttlMs: number, rhythm: Rhythm): Beat {
  const deadline = Math.max(beat?.deadline ?? Number.NEGATIVE_INFINITY, deadlineOf(sentAt, ttlMs, rhythm))
  const due = sentAt + Math.min(rhythm.renewEveryMs, ttlMs / 3)
  const renewAt = rhythm.heartbeat
    ? Math.max(beat && beat.renewAt > sentAt ? beat.renewAt : 0, due)
    : Number.POSITIVE_INFINITY
  return { deadline, renewAt }
}

/** A renewal gave no verdict: ask again soon, several times before the deadline. The deadline stands. */
export function unanswered(beat: Beat, now: number, rhythm: Rhythm): Beat {
  return { ...beat, renewAt: rhythm.heartbeat ? now + Math.max(1, Math.floor(rhythm.renewEveryMs / 4)) : beat.renewAt }
}

/** What to do now: the deadline comes first, whatever is in flight (I2). */
export function next(beat: Beat, now: number, renewing: boolean): 'expire' | 'renew' | 'wait' {
  if (now >= beat.deadline) return 'expire'
  return !renewing && now >= beat.renewAt ? 'renew' : 'wait'
}

export interface KeeperEvents {
  renewed(latencyMs: number): void
  atRisk(error: unknown): void
  ended(reason: LossReason): void
}

/**
 * Keeps one lease: sends heartbeats, and ends the lease at its deadline with a timer of its own, so that a renewal
 * that hangs cannot hold it up. Stopping it is final.
 */
export class Keeper {
  readonly #store: Store
  readonly #clock: Clock
  readonly #held: HeldRef
  readonly #rhythm: Rhythm
  readonly #events: KeeperEvents
  readonly #timing: TimerOptions
  /** Of all renewals; made for the first. */
  #scope: CallScope | undefined
  #beat: Beat
  #life: Life | null = null
  #stopped = false
  #renewing: Promise<void> | null = null
  #timer: Timer | undefined
  #hintWaits = false
  #hintedAt: number | undefined

  constructor(
    store: Store,
    clock: Clock,
    held: HeldRef,
    rhythm: Rhythm,
    grant: { readonly sentAt: number; readonly ttlMs: number },
    events: KeeperEvents,
    keepAlive: boolean,
  ) {
    this.#store = store
    this.#clock = clock
    this.#held = held
    this.#rhythm = rhythm
    this.#events = events
    this.#timing = keepAlive ? PROMPT_AND_ALIVE : PROMPT
    this.#beat = granted(null, grant.sentAt, grant.ttlMs, rhythm)
    this.#arm()
  }

  get deadline(): number {
    return this.#beat.deadline
  }

  /** The renewal in flight, if any; settles within the call time-out. */
  get renewing(): Promise<void> | null {
    return this.#renewing
  }

  /** Ends the lease if its deadline has passed; cheap, and right even when no timer could run. */
  look(): void {
    if (!this.#stopped && next(this.#beat, this.#clock.now(), true) === 'expire') this.#end('expired')
  }

  /** Something may have happened to our claim: ask now, or a little later where hints come in storms. */
  hint(): void {
    if (this.#stopped || !this.#rhythm.heartbeat) return
    // What is on its way may have been read before whatever happened.
    this.#hintWaits = this.#renewing !== null
    if (this.#hintWaits) return
    const gap = Math.min(HINT_GAP_MS, this.#rhythm.renewEveryMs / 4)
    const now = this.#clock.now()
    const askAt = this.#hintedAt === undefined ? now : Math.max(now, this.#hintedAt + gap)
    if (askAt >= this.#beat.renewAt) return
    this.#hintedAt = askAt
    this.#beat = { ...this.#beat, renewAt: askAt }
    this.#arm()
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  /** After this, calls still in flight can no longer matter. */
  dispose(): void {
    this.stop()
    this.#scope?.abort()
  }

  /** Told to the store with each renewal, until one has succeeded. */
  setLife(life: Life): void {
    this.#life = life
  }

  /** A renewal after the one in flight, if any. Resolves with the store's error where it gave no verdict, else null. */
  async renew(): Promise<unknown> {
    while (this.#renewing) await this.#renewing
    return this.#stopped ? null : this.#start()
  }

  #start(): Promise<unknown> {
    const renewal = this.#ask()
    this.#renewing = renewal.then(() => {
      this.#renewing = null
      this.#arm()
      if (this.#hintWaits) this.hint()
    })
    this.#arm()
    return renewal
  }

  #ask(): Promise<unknown> {
    const sentAt = this.#clock.now()
    const life = this.#life
    const held = life ? { ...this.#held, life } : this.#held
    this.#scope ??= new CallScope()
    const scope = this.#scope
    return new Promise((resolve) => {
      const noVerdict = (error: unknown) => {
        if (!this.#stopped) {
          this.#beat = unanswered(this.#beat, this.#clock.now(), this.#rhythm)
          this.#events.atRisk(error)
        }
        resolve(error)
      }
      let timedOut = false
      const timer = this.#clock.timer(
        this.#rhythm.callTimeoutMs,
        () => {
          timedOut = true
          noVerdict(new StoreError(`no answer within ${this.#rhythm.callTimeoutMs} ms`, 'unknown'))
        },
        { keepAlive: this.#timing === PROMPT_AND_ALIVE },
      )
      call(() => this.#store.renew(held, scope)).then(
        // An answer that comes after the time-out but before the deadline still counts, by its send time.
        (outcome) => {
          timer.cancel()
          if (outcome?.kind !== 'lost' && !(outcome?.kind === 'renewed' && isGrant(outcome))) {
            return timedOut || noVerdict(nonsense('renew', outcome))
          }
          this.#answered(sentAt, life, outcome)
          resolve(null)
        },
        (error) => {
          timer.cancel()
          if (!timedOut) noVerdict(error)
        },
      )
    })
  }

  #answered(sentAt: number, life: Life | null, outcome: RenewOutcome): void {
    this.look()
    if (this.#stopped) return
    if (outcome.kind === 'lost') return this.#end(outcome.reason)
    // The same key with another fence is another grant: nothing says that nobody held it in between (I5).
    if (outcome.fence !== this.#held.fence) return this.#end('taken')
    if (life === this.#life) this.#life = null
    this.#beat = granted(this.#beat, sentAt, outcome.ttlMs, this.#rhythm)
    this.#events.renewed(this.#clock.now() - sentAt)
    this.#arm()
  }

  #step(): void {
    const now = this.#clock.now()
    const action = this.#stopped ? 'wait' : next(this.#beat, now, this.#renewing !== null)
    if (action === 'expire') return this.#end('expired')
    if (action === 'wait') return this.#arm()
    void this.#start()
  }

  /** One timer for both. While a renewal is in flight it is the deadline's alone, and no call can hold it up (I2). */
  #arm(): void {
    this.#timer?.cancel()
    if (this.#stopped) return
    const { deadline, renewAt } = this.#beat
    const at = this.#renewing ? deadline : Math.min(renewAt, deadline)
    this.#timer = this.#clock.timer(Math.max(at - this.#clock.now(), 0), () => this.#step(), this.#timing)
  }

  #end(reason: LossReason): void {
    this.stop()
    this.#events.ended(reason)
  }
}
