import type { Grant, Owner } from './attempt.js'
import { type Deferred, deferred } from './deferred.js'
import type { Timer } from './environment.js'
import type { LeaseLostError } from './errors.js'
import { emit } from './events.js'
import { giveBack } from './give-back.js'
import { Keeper, type KeeperEvents } from './keeper.js'
import type { LeaseCore, ReleaseResult } from './lease.js'
import { listen } from './listen.js'
import { lostError, releasedError, unavailable } from './messages.js'
import { resolveLife, type Wish } from './options.js'
import { Scope } from './scope.js'
import type { Life, LossReason, ReleaseOutcome, Store, Watch } from './store.js'

/** The working part of a lease: from its grant to its loss or release, and the clean-up after either. */
export class ActiveLease implements LeaseCore, KeeperEvents {
  readonly key: string
  readonly owner: string
  readonly fence: bigint
  readonly ttlMs: number
  readonly #store: Store
  readonly #wish: Wish
  readonly #owner: Owner
  readonly #grant: Grant
  readonly #keeper: Keeper
  /** Made when somebody asks for the signal. */
  #scope: Scope | undefined
  readonly #onOver: (lease: ActiveLease) => void
  #state: 'held' | 'lost' | 'releasing' = 'held'
  #lost: LeaseLostError | null = null
  #lastError: unknown
  #endedAt = 0
  #release: Promise<ReleaseResult> | null = null
  /** Made when somebody waits for it. */
  #settled: Deferred | undefined
  #lingers = false
  #maxHoldAt: number | undefined
  #maxHold: Timer | undefined
  #cleanUp: Timer | undefined
  readonly #watch: Watch | undefined

  /** `onOver` is called once, when nothing of this lease is left to do. */
  constructor(
    store: Store,
    wish: Wish,
    owner: Owner,
    grant: Grant,
    keepAlive: boolean,
    onOver: (lease: ActiveLease) => void,
  ) {
    this.key = owner.key.name
    this.owner = owner.owner
    this.fence = grant.fence
    this.ttlMs = grant.ttlMs
    this.#store = store
    this.#wish = wish
    this.#owner = owner
    this.#grant = grant
    this.#onOver = onOver
    const { clock } = wish.environment
    const { ttlMs, lockDelayMs, fenceFloor } = wish
    const held = { key: owner.key, owner: owner.owner, ttlMs, lockDelayMs, fence: grant.fence, fenceFloor }
    this.#keeper = new Keeper(store, clock, held, wish, grant, this, keepAlive)
    if (wish.maxHoldMs !== undefined) {
      this.#maxHoldAt = grant.sentAt + wish.maxHoldMs
      const left = Math.max(this.#maxHoldAt - clock.now(), 0)
      this.#maxHold = clock.timer(left, () => this.look(), { keepAlive, prompt: true })
    }
    if (wish.heartbeat) this.#watch = listen(store, held, () => this.#keeper.hint())
    emit(wish.observers, 'acquired', () => {
      const { fence, waitedMs, attempts } = grant
      return { type: 'acquired', ...this.#about(), fence, waitedMs, attempts }
    })
  }

  get signal(): AbortSignal {
    if (!this.#scope) {
      this.#scope = new Scope()
      if (this.#lost) this.#scope.abort(this.#lost)
    }
    return this.#scope.realSignal()
  }

  get deadline(): number {
    return this.#keeper.deadline
  }

  /** Resolves when its holder lets go: the release has begun. */
  get settled(): Promise<void> {
    this.#settled ??= deferred()
    if (this.#release) this.#settled.resolve()
    return this.#settled.promise
  }

  /** No answer to the release: it may stand in the store up to its TTL. */
  get lingers(): boolean {
    return this.#lingers
  }

  get lost(): LeaseLostError | null {
    return this.#lost
  }

  remainingMs(): number {
    return this.#state === 'held' ? Math.max(this.#keeper.deadline - this.#now(), 0) : 0
  }

  look(): void {
    if (this.#state === 'held') this.#keeper.look()
    if (this.#maxHoldAt !== undefined && this.#now() >= this.#maxHoldAt) this.end('max-hold')
  }

  async renew(): Promise<void> {
    this.look()
    if (this.#state === 'held') {
      const error = await this.#keeper.renew()
      this.look()
      if (error !== null && this.#state === 'held')
        throw unavailable(this.#store, `renew ${JSON.stringify(this.key)}`, error)
    }
    if (this.#state !== 'held') throw this.#lost ?? releasedError(this)
  }

  setLife(life: Life): Promise<void> {
    this.#keeper.setLife(resolveLife(this.#store, this.#wish, life))
    return this.renew()
  }

  /** What a release that found nothing means: it was gone before, and nobody told us. */
  get missing(): LeaseLostError {
    return lostError(this.#facts('missing', 0))
  }

  /** Ends the lease from our side; the store learns of it when the work has settled. */
  end(reason: LossReason): void {
    if (this.#state !== 'held') return
    this.#keeper.stop()
    this.ended(reason)
  }

  release(): Promise<ReleaseResult> {
    this.#release ??= this.#doRelease()
    return this.#release
  }

  async #doRelease(): Promise<ReleaseResult> {
    this.look()
    const wasHeld = this.#state === 'held'
    const now = this.#now()
    if (wasHeld) {
      this.#state = 'releasing'
      this.#endedAt = now
    }
    this.#keeper.stop()
    this.#maxHold?.cancel()
    this.#cleanUp?.cancel()
    this.#watch?.close()
    this.#owner.retired = true
    this.#settled?.resolve()
    // Within two call time-outs in all: a renewal in flight first, then the release, then once more if time is left.
    const { clock } = this.#wish.environment
    const until = now + 2 * this.#wish.callTimeoutMs
    if (this.#keeper.renewing) await this.#keeper.renewing
    const answer = await giveBack(this.#store, clock, this.#owner, until, this.#wish, () => this.#keepMs(wasHeld))
    this.#lingers = answer === null
    const outcome = wasHeld ? resultOf(answer) : 'lost'
    this.#keeper.dispose()
    // It was gone before, and this is how we learn of it.
    if (wasHeld && outcome === 'lost') this.#tellLost('missing', 0)
    emit(this.#wish.observers, 'released', () => ({
      type: 'released',
      ...this.#about(),
      fence: this.fence,
      outcome,
      heldForMs: this.#heldForMs(),
    }))
    this.#onOver(this)
    return outcome
  }

  /** What must stay taken: the rest of the minimal hold, and after a loss the rest of the lock delay. */
  #keepMs(wasHeld: boolean): number {
    const now = this.#now()
    const minHold = this.#grant.answeredAt + this.#wish.minHoldMs - now
    const lockDelay = wasHeld ? 0 : this.#endedAt + this.#wish.lockDelayMs - now
    return Math.max(0, Math.ceil(minHold), Math.ceil(lockDelay))
  }

  /** The keeper tells of the end, of a renewal, and of one without a verdict. */
  ended(reason: LossReason): void {
    this.#state = 'lost'
    const now = this.#now()
    this.#endedAt = reason === 'expired' ? this.#keeper.deadline : now
    const lateByMs = Math.max(now - this.#keeper.deadline, 0)
    this.#lost = lostError(this.#facts(reason, lateByMs), this.#lastError)
    this.#maxHold?.cancel()
    this.#watch?.close()
    this.#armCleanUp()
    this.#tellLost(reason, lateByMs)
    this.#scope?.abort(this.#lost)
  }

  #tellLost(reason: LossReason, lateByMs: number): void {
    emit(this.#wish.observers, 'lost', () => ({ type: 'lost', ...this.#about(), ...this.#facts(reason, lateByMs) }))
  }

  /** On a shared session the record would live on: tell the store when a TTL store would have freed it by itself. */
  #armCleanUp(): void {
    const { clock } = this.#wish.environment
    const freedAt =
      this.#keeper.deadline + this.ttlMs * this.#wish.driftRatio + this.#wish.marginMs + this.#wish.lockDelayMs
    this.#cleanUp = clock.timer(Math.max(freedAt - clock.now(), 0), () => void this.release(), { prompt: true })
  }

  renewed(latencyMs: number): void {
    this.#lastError = undefined
    emit(this.#wish.observers, 'renewed', () => ({ type: 'renewed', ...this.#about(), fence: this.fence, latencyMs }))
  }

  atRisk(error: unknown): void {
    this.#lastError = error
    emit(this.#wish.observers, 'at-risk', () => ({
      type: 'at-risk',
      ...this.#about(),
      fence: this.fence,
      remainingMs: this.remainingMs(),
      error,
    }))
  }

  #now(): number {
    return this.#wish.environment.clock.now()
  }

  #heldForMs(): number {
    return (this.#endedAt || this.#now()) - this.#grant.sentAt
  }

  #facts(reason: LossReason, lateByMs: number) {
    return { key: this.key, fence: this.fence, reason, heldForMs: this.#heldForMs(), lateByMs }
  }

  #about() {
    return { namespace: this.#wish.namespace, key: this.key, store: this.#store.name }
  }
}

const resultOf = (answer: ReleaseOutcome | null): ReleaseResult =>
  answer === null ? 'unknown' : answer.kind === 'released' ? 'released' : 'lost'
