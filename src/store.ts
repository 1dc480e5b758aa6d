/**
 * THE seam. A store makes one attempt and gives a verdict.
 *
 * Durations in, verdicts out: a store never waits for its turn, retries a verdict, renews by itself or returns an
 * instant. The core reads its own clock before each call and derives every deadline from that. A store may repeat,
 * within one call, what certainly had no effect (a busy file, an unknown script).
 *
 * Every call has three answers. Yes and no resolve; "no verdict" rejects with a {@link StoreError} that says what may
 * have happened. See `docs/decisions/0001-the-seam.md` for why each member is here, store by store.
 */

/** The namespace and the name are kept apart everywhere: `a` + `b:c` is not `a:b` + `c`. */
export interface Key {
  readonly namespace: string
  readonly name: string
}

/** One attempt to hold a key. `owner` is 160 random bits as text, fresh per acquisition, secret. */
export interface ClaimRef {
  readonly key: Key
  readonly owner: string
}

/**
 * Whose death ends the lease. `pids`: a store that can see with certainty that all of them are dead may free the
 * lease at once. `outlives-process`: never freed before its time.
 */
export type Life = { readonly pids: readonly number[] } | 'outlives-process'

export interface Claim extends ClaimRef {
  /** How long the holder will believe, in ms. The store keeps the lease `ttlMs + lockDelayMs`. */
  readonly ttlMs: number
  readonly lockDelayMs: number
  /** The store keeps the lease at least this long after the grant, whatever happens; 0 for no such wish. */
  readonly minHoldMs: number
  /** The granted fence is at least this. */
  readonly fenceFloor: bigint
  /** Leave a place in line when the key is held (stores with `order: 'fifo'`). */
  readonly queue: boolean
  /** Who we are, for people. */
  readonly label?: string
  readonly life: Life
}

/** A lease that was granted, as its holder names it when renewing. */
export interface HeldRef extends ClaimRef {
  readonly ttlMs: number
  readonly lockDelayMs: number
  /** The fence of the grant. A renewal never changes the fence stored for the lease. */
  readonly fence: bigint
  /** Raises the store's counter for later grants; `0n` for no wish. */
  readonly fenceFloor: bigint
  /** Takes the place of the claim's; left out, that one stays. For work that has moved to other processes since. */
  readonly life?: Life
}

/** What a store needs of an AbortSignal (which is one). Calls back once, without an event. */
export interface Cancellation {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * `signal` aborts when nobody wants the answer any more: do not send what has not been sent. What was sent may still be
 * answered, and a grant that comes so late is given back. The core times calls; a store need not.
 */
export interface CallOptions {
  readonly signal: AbortSignal
  /**
   * The same news, for stores so fast that the making of an AbortSignal (some µs) shows: the core makes `signal` when it
   * is first read, and such a store reads `call.cancellation ?? call.signal`. Whoever else calls a store need not give it.
   */
  readonly cancellation?: Cancellation
}

export interface ReleaseOptions extends CallOptions {
  /** Keep the key taken this long: the owner is replaced by a tombstone that nothing ever matches. Default 0. */
  readonly keepMs?: number
}

export type AcquireOutcome =
  | {
      readonly kind: 'granted'
      readonly fence: bigint
      /** The TTL that the store granted, which may differ from the one asked for (whole seconds, negotiated bounds). */
      readonly ttlMs: number
    }
  | {
      readonly kind: 'held'
      /** A place in line was left: the owner must be asked again, or released. */
      readonly queued: boolean
      /** The label of the holder, where known. */
      readonly holder?: string
      /** When asking again is likely to succeed, where known. */
      readonly retryAfterMs?: number
    }
  /** The store answers, but must not grant yet (restarted without its memory a moment ago). */
  | { readonly kind: 'not-ready'; readonly why: string; readonly retryAfterMs: number }

/**
 * Why a lease is lost. `expired`: its deadline passed · `taken`: another owner has the key · `missing`: deleted,
 * flushed, restarted empty · `session`: the session that carried it ended · `revoked`: an operator asked for it back ·
 * `max-hold`: `maxHoldMs` passed · `closed`: its `Leases` was closed.
 */
export type LossReason = 'expired' | 'taken' | 'missing' | 'session' | 'revoked' | 'max-hold' | 'closed'

export type RenewOutcome =
  | { readonly kind: 'renewed'; readonly fence: bigint; readonly ttlMs: number }
  | { readonly kind: 'lost'; readonly reason: LossReason }

export type ReleaseOutcome = { readonly kind: 'released' } | { readonly kind: 'absent' }

/**
 * `freed`: the key is free now (force) · `refusing`: its renewals are refused from now on · `asked`: the holder was
 * asked, nothing enforces it · `absent`: nobody held it.
 */
export interface RevokeOutcome {
  readonly kind: 'freed' | 'refusing' | 'asked' | 'absent'
  /** Other keys that went with it, where a store can only end a whole session. */
  readonly alsoFreed?: readonly string[]
}

/** What people see of a lease. Never carries the owner token; never for decisions. */
export interface Holding {
  readonly namespace: string
  readonly key: string
  readonly fence: bigint
  /** `held`; `revoked`: asked back, its renewals are refused; `kept`: released, kept taken for a while. */
  readonly state: 'held' | 'revoked' | 'kept'
  readonly label?: string
  /** Milliseconds since the grant, by the store's knowledge. */
  readonly heldForMs?: number
  /** Milliseconds until the store would free it, if it is not renewed. */
  readonly remainingMs?: number
  /** Labels of those in line, in order, where the store knows them. */
  readonly waiters?: readonly string[]
}

/** A hint source: may fire falsely, late or never. Speed, never correctness. */
export interface Watch {
  close(): void
}

/** Declared by each store, shown in docs and by the CLI, checked by the conformance suite. */
export interface StoreTraits {
  /** `durable`: fences grow through restarts; `volatile`: they grow as long as a clock does not go back; `none`. */
  readonly fencing: 'durable' | 'volatile' | 'none'
  /** `Claim.fenceFloor` and `HeldRef.fenceFloor` are honoured. */
  readonly fenceFloor: boolean
  /** Who ends a lease that is not renewed. */
  readonly expiry: 'server-clock' | 'host-clock' | 'session'
  /** What a plain revoke does. */
  readonly revoke: 'refuses-renewal' | 'asks' | 'force-only'
  readonly order: 'fifo' | 'none'
  readonly wakeup: 'notify' | 'poll'
  /** Who can meet at this store. */
  readonly scope: 'process' | 'host' | 'network'
  /** `lockDelayMs`, `minHoldMs` and `keepMs` are honoured. */
  readonly lockDelay: boolean
  /** A lease may outlive the process that took it. */
  readonly detachable: boolean
  /** `list` gives names; otherwise the store knows hashes only. */
  readonly listsNames: boolean
  readonly ttlMinMs: number
  readonly ttlMaxMs: number
  readonly ttlGranularityMs: number
}

/** A setting or a fact about the server that weakens or breaks the promise. */
export interface Finding {
  readonly level: 'info' | 'warning' | 'unsafe'
  /** What was seen, how, and what to do: one line. */
  readonly message: string
}

export interface Probe {
  /** Two stores with the same id are the same server. */
  readonly id: string
  /** Changes when the server lost its memory or restarted. */
  readonly incarnation: string
  readonly serverTimeMs?: number
  readonly version?: string
  /** What is true now, after connecting; the static traits state the worst case. */
  readonly traits: StoreTraits
  readonly findings: readonly Finding[]
}

export interface Store {
  /** For people: `"redis"`, `"quorum(redis,redis,redis)"`. */
  readonly name: string
  /** Where it is, for people: a path or a URL without its password. */
  readonly location?: string
  readonly traits: StoreTraits
  /**
   * One attempt, atomic, only if free. Asking again with the same owner is a grant with its TTL restored and its
   * stored fence unchanged. A losing attempt changes nothing for the holder.
   */
  acquire(claim: Claim, call: CallOptions): Promise<AcquireOutcome>
  /** Only the owner with this fence. Restores the TTL; never re-creates, never revives what has expired. */
  renew(held: HeldRef, call: CallOptions): Promise<RenewOutcome>
  /** Only the owner. Idempotent. Gives up a place in line too. */
  release(ref: ClaimRef, call: ReleaseOptions): Promise<ReleaseOutcome>
  inspect(key: Key, call: CallOptions): Promise<Holding | null>
  /** Everything held in the namespace whose name starts with `prefix`, in the order of names. */
  list?(namespace: string, prefix: string, call: CallOptions): AsyncIterable<Holding>
  revoke?(key: Key, how: { readonly force: boolean }, call: CallOptions): Promise<RevokeOutcome>
  /**
   * Resolves once armed. Fires when the key may have become free, or when the claim of `ref` may have changed. A HeldRef
   * where the lease is held: its holder wants to hear of a revoke or a loss, not of the key becoming free.
   */
  watch?(ref: ClaimRef | HeldRef, onHint: () => void, call: CallOptions): Promise<Watch>
  probe(call: CallOptions): Promise<Probe>
  /** Closes what the store opened, never what its caller opened. Idempotent. */
  close(): Promise<void>
}
