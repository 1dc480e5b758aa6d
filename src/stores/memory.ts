import { type Clock, type Environment, systemEnvironment } from '../environment.js'
import { StoreError } from '../errors.js'
// biome-ignore format: a list
import type {
  AcquireOutcome, CallOptions, Claim, ClaimRef, HeldRef, Holding, Key, Probe, ReleaseOutcome, RenewOutcome, RevokeOutcome,
  Store, StoreTraits,
} from '../store.js'

export interface MemoryOptions {
  /** Whose `clock.now()` ends leases. Default: the system's. */
  readonly environment?: Environment
  /**
   * What to declare. Default `'volatile'`: nothing survives the process, but the counter starts at the wall clock in
   * microseconds, so fences grow from one process to the next as long as that clock does not go back. Declare
   * `'durable'` only where the server object outlives what is called a restart, as in a simulation.
   */
  readonly fencing?: StoreTraits['fencing']
}

/** What the clients of one process meet at. */
export interface MemoryServer {
  /** A client of its own: closing it closes no other, and frees nothing. */
  connect(): Store
  /** What the server acts on, for tests that ask it and not a client. It shows the owner token. */
  truth(key: Key): { readonly owner: string | null; readonly fence: bigint } | null
  /** Rows and watched keys, expired ones included. */
  size(): number
}

/**
 * Leases of one process, in its memory: the reference store, whose code below is the specification that every store
 * follows. Nobody outside the process can meet here, and everything is gone with it.
 */
export function memoryStore(options: MemoryOptions = {}): Store {
  return memoryServer(options).connect()
}

export function memoryServer(options: MemoryOptions = {}): MemoryServer {
  const { environment = systemEnvironment(), fencing = memoryTraits.fencing } = options
  const table = new Table(environment.clock)
  const traits: StoreTraits = { ...memoryTraits, fencing }
  const id = environment.random.id()
  const probe = (): Probe => {
    return { id: `memory ${id}`, incarnation: id, serverTimeMs: environment.clock.wall(), traits, findings: [] }
  }
  return { connect: () => client(table, traits, probe), truth: (key) => table.row(key) ?? null, size: () => table.size }
}

const memoryTraits: StoreTraits = {
  fencing: 'volatile',
  fenceFloor: true,
  // Every party reads the one clock of this host; there is no server whose clock could differ.
  expiry: 'host-clock',
  revoke: 'refuses-renewal',
  order: 'none',
  wakeup: 'notify',
  scope: 'process',
  lockDelay: true,
  // The lease ends with the process because the store does; the death of a pid needs no noticing.
  detachable: false,
  listsNames: true,
  ttlMinMs: 1,
  ttlMaxMs: 2 ** 31 - 1,
  ttlGranularityMs: 1,
}

interface Row {
  readonly key: Key
  /** `null` once released and kept: a tombstone, which no owner ever matches. */
  owner: string | null
  readonly label: string | undefined
  readonly fence: bigint
  readonly grantedAt: number
  expiresAt: number
  revoked: boolean
}

/** Rows are looked through for expired ones when there are this many, so that lost leases do not pile up. */
const SWEEP_FROM = 1_024

class Table {
  readonly #clock: Clock
  readonly #rows = new Map<string, Row>()
  readonly #listeners = new Map<string, Set<() => void>>()
  /** The highest fence given or asked for: one for all keys, so that a key that is gone needs no memory. */
  #counter: bigint
  #sweepAt = SWEEP_FROM

  constructor(clock: Clock) {
    this.#clock = clock
    this.#counter = BigInt(Math.max(0, Math.floor(clock.wall() * 1000)))
  }

  acquire(claim: Claim): AcquireOutcome {
    const now = this.#clock.now()
    const row = this.row(claim.key)
    const expiresAt = now + Math.max(claim.ttlMs + claim.lockDelayMs, claim.minHoldMs)
    if (!row) {
      this.#sweep()
      this.#counter = max(this.#counter + 1n, claim.fenceFloor)
      const { key, owner, label } = claim
      const fence = this.#counter
      this.#rows.set(idOf(key), { key, owner, label, fence, grantedAt: now, expiresAt, revoked: false })
      return { kind: 'granted', fence, ttlMs: claim.ttlMs }
    }
    // Our own claim whose answer was lost. The fence stays: a renewal that is still under way must go on matching.
    if (row.owner === claim.owner && !row.revoked) {
      row.expiresAt = Math.max(row.expiresAt, expiresAt)
      return { kind: 'granted', fence: row.fence, ttlMs: claim.ttlMs }
    }
    const retryAfterMs = row.expiresAt - now
    return { kind: 'held', queued: false, retryAfterMs, ...(row.label !== undefined && { holder: row.label }) }
  }

  renew(held: HeldRef): RenewOutcome {
    const row = this.row(held.key)
    // Nobody took it: deleted, expired, or given back by this very owner and kept.
    if (!row || row.owner === null) return { kind: 'lost', reason: 'missing' }
    if (row.owner !== held.owner || row.fence !== held.fence) return { kind: 'lost', reason: 'taken' }
    if (row.revoked) return { kind: 'lost', reason: 'revoked' }
    row.expiresAt = Math.max(row.expiresAt, this.#clock.now() + held.ttlMs + held.lockDelayMs)
    this.#counter = max(this.#counter, held.fenceFloor)
    return { kind: 'renewed', fence: row.fence, ttlMs: held.ttlMs }
  }

  /**
   * `keepMs` alone decides what stays, also before `minHoldMs` has passed: that one covers an owner who never comes
   * back. The core passes the rest of it as `keepMs` when the work ran, and 0 when it never did.
   */
  release(ref: ClaimRef, keepMs: number): ReleaseOutcome {
    const row = this.row(ref.key)
    if (row?.owner !== ref.owner) return { kind: 'absent' }
    row.owner = null
    row.expiresAt = this.#clock.now() + keepMs
    if (keepMs <= 0) this.#rows.delete(idOf(ref.key))
    this.#hint(ref.key)
    return { kind: 'released' }
  }

  revoke(key: Key, force: boolean): RevokeOutcome {
    const row = this.row(key)
    if (!row) return { kind: 'absent' }
    if (force) this.#rows.delete(idOf(key))
    else row.revoked = true
    this.#hint(key)
    return { kind: force ? 'freed' : 'refusing' }
  }

  inspect(key: Key): Holding | null {
    const row = this.row(key)
    return row ? this.#holding(row) : null
  }

  list(namespace: string, prefix: string): Holding[] {
    const asked = ({ key }: Row) => key.namespace === namespace && key.name.startsWith(prefix)
    const live = [...this.#rows.values()].filter((row) => asked(row) && row.expiresAt > this.#clock.now())
    return live.map((row) => this.#holding(row)).sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Told of every way in which the key becomes free or a claim ends, except an expiry that nobody has looked at. */
  listen(key: Key, onHint: () => void): () => void {
    const id = idOf(key)
    const listeners = this.#listeners.get(id) ?? new Set()
    const listener = () => onHint() // of its own, so that two watches with one callback are two
    this.#listeners.set(id, listeners.add(listener))
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.#listeners.delete(id)
    }
  }

  /** What is there now. What has expired is gone, for its owner too. */
  row(key: Key): Row | undefined {
    const row = this.#rows.get(idOf(key))
    if (!row || row.expiresAt > this.#clock.now()) return row
    this.#rows.delete(idOf(key))
    this.#hint(key)
    return undefined
  }

  get size(): number {
    return this.#rows.size + this.#listeners.size
  }

  #sweep(): void {
    if (this.#rows.size < this.#sweepAt) return
    for (const row of [...this.#rows.values()]) this.row(row.key)
    this.#sweepAt = Math.max(SWEEP_FROM, this.#rows.size * 2)
  }

  #hint(key: Key): void {
    const listeners = this.#listeners.get(idOf(key))
    for (const listener of listeners ?? []) {
      // Never within the call that caused it, and not after the watch was closed.
      queueMicrotask(() => listeners?.has(listener) && listener())
    }
  }

  #holding(row: Row): Holding {
    const now = this.#clock.now()
    return {
      namespace: row.key.namespace,
      key: row.key.name,
      fence: row.fence,
      state: row.owner === null ? 'kept' : row.revoked ? 'revoked' : 'held',
      ...(row.label !== undefined && { label: row.label }),
      heldForMs: now - row.grantedAt,
      remainingMs: row.expiresAt - now,
    }
  }
}

function client(table: Table, traits: StoreTraits, probe: () => Probe): Store {
  let open = true
  const unlisten = new Set<() => void>()
  const ask = async <T>(call: CallOptions, answer: () => T): Promise<T> => {
    const { aborted, reason } = call.cancellation ?? call.signal
    if (!open) throw new StoreError('the memory store is closed', 'none')
    if (aborted) throw new StoreError('cancelled before it was asked', 'none', { cause: reason })
    return answer()
  }
  return {
    name: 'memory',
    traits,
    acquire: (claim, call) => ask(call, () => table.acquire(claim)),
    renew: (held, call) => ask(call, () => table.renew(held)),
    release: (ref, call) => ask(call, () => table.release(ref, call.keepMs ?? 0)),
    inspect: (key, call) => ask(call, () => table.inspect(key)),
    async *list(namespace, prefix, call) {
      yield* await ask(call, () => table.list(namespace, prefix))
    },
    revoke: (key, { force }, call) => ask(call, () => table.revoke(key, force)),
    watch: (ref, onHint, call) =>
      ask(call, () => {
        const stop = table.listen(ref.key, onHint)
        unlisten.add(stop)
        return { close: () => void (unlisten.delete(stop) && stop()) }
      }),
    probe: (call) => ask(call, probe),
    async close() {
      open = false
      for (const stop of unlisten) stop()
      unlisten.clear()
    },
  }
}

/** Injective: namespace `a` with name `b:c` is not namespace `a:b` with name `c`. */
const idOf = ({ namespace, name }: Key): string => `${namespace.length}:${namespace}${name}`

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
