import { ActiveLease } from './active-lease.js'
import { type Owner, timed } from './attempt.js'
import * as check from './checks.js'
import { sleep } from './environment.js'
import { AcquireTimeoutError, LeaseError, StoreUnsafeError } from './errors.js'
import type { Observe } from './events.js'
import { giveBack } from './give-back.js'
import { Lease } from './lease.js'
import { lingeringError, unavailable } from './messages.js'
import { onAbort } from './on-abort.js'
import {
  type AcquireOptions,
  type LeasesOptions,
  resolveSettings,
  type Settings,
  type TryAcquireOptions,
  type Way,
  type Wish,
  Wishes,
} from './options.js'
import { CallScope, Scope } from './scope.js'
import type { Holding, Key, RevokeOutcome, Store } from './store.js'
import { underLease, type Work } from './under-lease.js'
import { type Acquirer, Acquisition } from './waiting.js'

/** How many `Leases` use a store: the last one to close closes it. */
const users = new WeakMap<Store, number>()

/**
 * Leases over a store. One `Leases` per store and process is enough; `close()` also closes the store, once the last
 * `Leases` made from it is closed (the store closes what it opened, never the client that it was given; a wrapper closes the store that it wraps).
 */
export function createLeases(store: Store, options: LeasesOptions = {}): Leases {
  return new Leases(store, options)
}

export class Leases implements AsyncDisposable {
  readonly #store: Store
  readonly #settings: Settings
  readonly #wishes: Wishes
  readonly #observers = new Set<Observe>()
  readonly #active = new Set<ActiveLease>()
  readonly #waiting = new Map<Acquisition, Promise<unknown>>()
  readonly #background = new Set<Promise<unknown>>()
  readonly #acquirer: Acquirer = {
    retire: (owner, wish) => this.#retire(owner, wish),
    holds: (name) => this.heldKeys().includes(name),
  }
  readonly #onOver = (lease: ActiveLease) => void this.#active.delete(lease)
  #closing: LeaseError | null = null
  #closed: Promise<void> | null = null

  /** Use {@link createLeases}. */
  constructor(store: Store, options: LeasesOptions) {
    this.#store = store
    this.#settings = resolveSettings(store, options, this.#observers)
    this.#wishes = new Wishes(store, this.#settings, options)
    if (options.observe) this.observe(options.observe)
    users.set(store, (users.get(store) ?? 0) + 1)
  }

  /**
   * One attempt: the lease, or `null` when another holds it or waits in line before us.
   * @throws {StoreUnavailableError} when there is no verdict; it never means "free" or "held".
   */
  tryAcquire(key: string, options?: TryAcquireOptions): Promise<Lease | null> {
    return this.#acquire(key, options, 'tries').then(asLease, nullWhenHeld)
  }

  /**
   * Waits for its turn, `waitMs` at most (default `Infinity`).
   * @throws {AcquireTimeoutError} held to the end of the wait · {@link StoreUnavailableError} no verdict ·
   * `signal.reason` when cancelled.
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    return this.#acquire(key, options, 'waits').then(asLease)
  }

  /**
   * Acquires, works, releases; resolves with what `work` returns. If the work throws, its error is what you get,
   * always (a failed release is attached to it as `releaseError`). Work that releases its lease itself and goes on is no
   * longer protected, by its own choice.
   * @throws {LeaseLostError} when the lease was lost, even if the work returned; its value is then `result`.
   */
  run<T>(key: string, work: Work<T>): Promise<T>
  run<T>(key: string, options: AcquireOptions, work: Work<T>): Promise<T>
  async run<T>(key: string, optionsOrWork: AcquireOptions | Work<T>, maybeWork?: Work<T>): Promise<T> {
    const [options, work] =
      typeof optionsOrWork === 'function' ? [undefined, optionsOrWork] : [optionsOrWork, maybeWork]
    check.callable('work', work)
    return underLease(await this.#acquire(key, options, 'waits', true), work as Work<T>)
  }

  /** Who holds it, for people; never for decisions: the answer is old when it arrives. */
  async inspect(key: string): Promise<Holding | null> {
    const ref = this.#key(key)
    return this.#call(`inspect ${JSON.stringify(key)}`, (call) => this.#store.inspect(ref, call))
  }

  /** Everything held in this namespace whose name starts with `prefix`. */
  async *list(prefix = ''): AsyncGenerator<Holding, void, undefined> {
    if (typeof prefix !== 'string') throw new TypeError(`prefix must be a string, but got ${check.show(prefix)}`)
    this.#refuseWhenClosed()
    const scope = new CallScope()
    const holdings = this.#store.list?.(this.#settings.namespace, prefix, scope)
    if (!holdings) throw new LeaseError('ERR_LEASE_UNSUPPORTED', `${this.#store.name} cannot list leases`)
    const iterator = holdings[Symbol.asyncIterator]()
    try {
      for (;;) {
        const step = await this.#call('list leases', () => iterator.next())
        if (step.done) return
        yield step.value
      }
    } finally {
      scope.abort()
      iterator.return?.().catch(() => {})
    }
  }

  /**
   * An operator's hand. Plain: its holder is told and its renewals are refused; the key stays taken until it lets go
   * or its TTL (and lock delay) ends. With `force` the key is free at once.
   * The dangerous case: after `force` the old holder may still be working, and exclusion is the operator's risk.
   */
  async revoke(key: string, options: { readonly force?: boolean } = {}): Promise<RevokeOutcome> {
    check.known('revoke', options, ['force'])
    const { force = false } = options
    check.boolean('force', force)
    const ref = this.#key(key)
    const revoke = this.#store.revoke?.bind(this.#store)
    if (!revoke) throw new LeaseError('ERR_LEASE_UNSUPPORTED', `${this.#store.name} cannot revoke leases`)
    return this.#call(`revoke ${JSON.stringify(key)}`, (call) => revoke(ref, { force }, call))
  }

  /**
   * Calls `listener` with every event from now on, as `createLeases({ observe })` does from the start. Gives a function
   * that ends this.
   */
  observe(listener: Observe): () => void {
    check.callable('listener', listener)
    // One function may be given twice, and each time is ended by itself.
    const observer: Observe = (event) => listener(event)
    this.#observers.add(observer)
    return () => void this.#observers.delete(observer)
  }

  /** The keys whose leases are held right now; reads the clock. */
  heldKeys(): string[] {
    return [...this.#active].flatMap((lease) => (lease.remainingMs() > 0 ? [lease.key] : []))
  }

  /**
   * Cancels waits, aborts the signals of held leases (reason `closed`), waits for their holders to release them, each
   * at most until its deadline, releases what is left, and closes the store. Idempotent.
   * @throws {StoreUnavailableError} listing the leases that could not be released; they may linger up to their TTL.
   */
  close(): Promise<void> {
    this.#closed ??= this.#doClose()
    return this.#closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #doClose(): Promise<void> {
    this.#closing = new LeaseError('ERR_LEASE_CLOSED', 'this Leases was closed')
    for (const acquisition of [...this.#waiting.keys()]) acquisition.cancel(this.#closing)
    await Promise.allSettled(this.#waiting.values())
    const unknown: string[] = []
    const { clock } = this.#settings.environment
    await Promise.all(
      [...this.#active].map(async (lease) => {
        lease.end('closed')
        const settled = new Scope()
        void lease.settled.then(() => settled.abort())
        await sleep(clock, lease.deadline - clock.now(), { signal: settled, keepAlive: true })
        await lease.release()
        if (lease.lingers) unknown.push(lease.key)
      }),
    )
    while (this.#background.size > 0) await Promise.all(this.#background)
    const left = (users.get(this.#store) ?? 1) - 1
    users.set(this.#store, left)
    if (left === 0) await this.#store.close()
    if (unknown.length > 0) throw lingeringError(unknown)
  }

  async #acquire(name: string, options: AcquireOptions | undefined, way: Way, keepAlive = false): Promise<ActiveLease> {
    const wish = this.#wishes.of(options, way)
    const key = this.#key(name)
    wish.signal?.throwIfAborted()
    const acquisition = new Acquisition(this.#store, wish, key, this.#acquirer)
    const stop = wish.signal && onAbort(wish.signal, () => acquisition.cancel(wish.signal?.reason))
    const acquired = acquisition.run()
    this.#waiting.set(acquisition, acquired)
    try {
      const { owner, grant } = await acquired
      // Cancelled between the grant and this line: as if it had never been granted.
      if (acquisition.cancelled.aborted) {
        this.#retire(owner, wish)
        throw acquisition.cancelled.reason
      }
      const active = new ActiveLease(this.#store, wish, owner, grant, keepAlive, this.#onOver)
      this.#active.add(active)
      return active
    } finally {
      this.#waiting.delete(acquisition)
      stop?.()
    }
  }

  /** Gives back, in the background, a claim that nobody will use. */
  #retire(owner: Owner, wish: Wish): void {
    owner.retired = true
    const { clock } = this.#settings.environment
    const work = giveBack(this.#store, clock, owner, clock.now() + 2 * wish.callTimeoutMs, wish)
    this.#background.add(work)
    void work.then(() => this.#background.delete(work))
  }

  #key(name: string): Key {
    check.key(name)
    this.#refuseWhenClosed()
    return { namespace: this.#settings.namespace, name }
  }

  #refuseWhenClosed(): void {
    if (this.#closing) throw this.#closing
  }

  async #call<T>(what: string, op: (call: CallScope) => Promise<T>): Promise<T> {
    const { environment, callTimeoutMs } = this.#settings
    const answer = await timed(environment.clock, callTimeoutMs, op)
    if ('value' in answer) return answer.value
    throw answer.error instanceof StoreUnsafeError ? answer.error : unavailable(this.#store, what, answer.error)
  }
}

const asLease = (active: ActiveLease): Lease => new Lease(active)

function nullWhenHeld(error: unknown): null {
  if (error instanceof AcquireTimeoutError) return null
  throw error
}
