import type { Environment } from '../environment.js'
import type {
  AcquireOutcome,
  Claim,
  Holding,
  Key,
  ReleaseOutcome,
  RenewOutcome,
  RevokeOutcome,
  Store,
  StoreTraits,
} from '../store.js'
import type { SqliteDatabase } from './sqlite/driver.js'
import { type FileCall, LeaseFile, type Transaction } from './sqlite/lease-file.js'
import { type Look, Observer } from './sqlite/observer.js'
import { checked, type SqliteOptions } from './sqlite/options.js'
import { LockedError, patienceOf } from './sqlite/patience.js'
import { absentProbe, probe } from './sqlite/probe.js'
import type { Session } from './sqlite/session.js'
import * as transactions from './sqlite/transactions.js'
import { Watchers } from './sqlite/watchers.js'

export type { SqliteDatabase } from './sqlite/driver.js'
export type { SqliteOptions } from './sqlite/options.js'

export const sqliteTraits: StoreTraits = {
  fencing: 'durable',
  fenceFloor: true,
  expiry: 'host-clock',
  revoke: 'refuses-renewal',
  order: 'none',
  wakeup: 'notify',
  scope: 'host',
  lockDelay: true,
  detachable: true,
  listsNames: true,
  ttlMinMs: 50,
  ttlMaxMs: 2 ** 31 - 1,
  ttlGranularityMs: 1,
}

/**
 * Leases of one host, in a SQLite file. Needs Node's own `node:sqlite` or the package `better-sqlite3`; loaded, like
 * the file, with the first call. Given a database object of either, it opens a connection of its own to the same file.
 * @throws TypeError for what is neither, and for a database in memory.
 */
export function sqliteStore(options: SqliteOptions): Store
export function sqliteStore(database: SqliteDatabase, options?: { readonly environment?: Environment }): Store
export function sqliteStore(
  from: SqliteOptions | SqliteDatabase,
  options: { readonly environment?: Environment } = {},
): Store {
  const { path, driver, environment } = checked(from, options)
  const observer = new Observer(environment)
  return new SqliteStore(path, new LeaseFile(path, driver, environment, observer.id), observer, environment)
}

/** After a call that tried in vain for a while already. */
const LOCKED_RETRY_MS = 50

/** Where there is no file, there is no lease; only an acquisition makes one. */
const absent = () => ({ kind: 'absent' }) as const
const missing = (): RenewOutcome => ({ kind: 'lost', reason: 'missing' })

class SqliteStore implements Store {
  readonly name = 'sqlite'
  readonly location: string
  readonly traits = sqliteTraits
  readonly #file: LeaseFile
  readonly #observer: Observer
  readonly #environment: Environment
  readonly #watchers: Watchers
  readonly #pruner = new transactions.Pruner()

  constructor(path: string, file: LeaseFile, observer: Observer, environment: Environment) {
    this.location = path
    this.#file = file
    this.#observer = observer
    this.#environment = environment
    this.#watchers = new Watchers(file, observer, environment.clock)
  }

  acquire: Store['acquire'] = async (claim, { signal }) => {
    try {
      return await this.#acquire(claim, { signal, patienceMs: patienceOf(claim.ttlMs) })
    } catch (error) {
      // The file is there and cannot be used now: who waits for the key waits for this, too.
      if (!(error instanceof LockedError) || signal.aborted) throw error
      return { kind: 'not-ready', why: 'the lease file is locked by another process', retryAfterMs: LOCKED_RETRY_MS }
    }
  }

  /**
   * Not flushed to disk: a renewal that a power cut undoes was of a holder that died with it. A raised fence counter
   * is for those who come after, and is.
   */
  renew: Store['renew'] = (held, { signal }) => {
    const durability = this.#file.wouldRaise(held.fenceFloor) ? 'full' : 'normal'
    return this.#file.write(
      { signal, patienceMs: patienceOf(held.ttlMs) },
      durability,
      (transaction) => transactions.renew(transaction, this.#observer, held),
      { absent: missing, replaced: missing },
    )
  }

  release: Store['release'] = async ({ key, owner }, call) => {
    const work = (transaction: Transaction): ReleaseOutcome => {
      const outcome = transactions.release(transaction, this.#observer, key, owner, call.keepMs ?? 0)
      this.#pruner.prune(transaction, this.#observer)
      return outcome
    }
    const outcome = await this.#file.write(call, 'normal', work, { absent })
    this.#watchers.touch(key)
    return outcome
  }

  revoke: NonNullable<Store['revoke']> = async (key, { force }, call) => {
    const work = (transaction: Transaction): RevokeOutcome =>
      transactions.revoke(transaction, this.#observer, key, force)
    const outcome = await this.#file.write(call, 'normal', work, { absent })
    this.#watchers.touch(key)
    return outcome
  }

  inspect: Store['inspect'] = async (key, call) => {
    const look = await this.#look(key, call)
    return look && this.#holding(look)
  }

  async *list(namespace: string, prefix: string, call: { readonly signal: AbortSignal }): AsyncGenerator<Holding> {
    const count = 100
    for (let from: Key | null = { namespace, name: prefix }; from !== null; ) {
      const start: Key = from
      const page = await this.#file.read(
        call,
        ({ rows }) => rows.page(start, count + 1),
        () => [],
      )
      from = page.length > count ? (page.pop()?.key ?? null) : null
      for (const row of page) {
        // Names that begin alike lie side by side.
        if (!row.key.name.startsWith(prefix)) return
        const holding = this.#holding(this.#observer.judge(row))
        if (holding) yield holding
      }
    }
  }

  watch: NonNullable<Store['watch']> = async (ref, onHint, call) => {
    const look = await this.#look(ref.key, call)
    return this.#watchers.add(ref, onHint, look)
  }

  probe: Store['probe'] = (call) =>
    this.#file.read(
      call,
      (session) => probe(session, this.traits, this.#environment),
      () => absentProbe(this.location, this.traits, this.#environment),
    )

  async close(): Promise<void> {
    this.#watchers.close()
    await this.#file.close()
  }

  /** A key that is held is answered by reading: those who lose take no lock and write nothing. */
  async #acquire(claim: Claim, call: FileCall): Promise<AcquireOutcome> {
    const observer = this.#observer
    const look = await this.#look(claim.key, call)
    let ended: transactions.Version | null = null
    if (look && !look.verdict.expired && !transactions.isOwn(look, claim)) {
      if (observer.hasEnded(look)) ended = look.row
      else if (!observer.mustSight(look)) return transactions.heldAnswer(look)
    }
    const outcome = await this.#file.write(call, 'full', (transaction) => {
      const wall = this.#environment.clock.wall()
      const outcome = transactions.acquire(transaction, observer, claim, ended, wall)
      if (outcome.kind === 'granted') this.#pruner.prune(transaction, observer)
      return outcome
    })
    this.#watchers.touch(claim.key)
    return outcome
  }

  #look(key: Key, call: FileCall): Promise<Look | null> {
    const work = ({ rows }: Session): Look | null => {
      const look = this.#observer.look(rows, key)
      if (look && this.#observer.sightsInMemory && this.#observer.mustSight(look)) this.#observer.sight(rows, look)
      return look && this.#observer.judge(look.row)
    }
    return this.#file.read(call, work, () => null)
  }

  /** What anybody may take is not held. */
  #holding(look: Look): Holding | null {
    const { row, verdict } = look
    if (verdict.expired || this.#observer.hasEnded(look)) return null
    return {
      namespace: row.key.namespace,
      key: row.key.name,
      fence: row.fence,
      state: row.state,
      ...(row.label !== null && { label: row.label }),
      ...(!verdict.foreign && { heldForMs: this.#observer.now() - row.granted }),
      remainingMs: verdict.remainingMs,
    }
  }
}
