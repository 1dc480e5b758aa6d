import { resolve } from 'node:path'
import { type Environment, systemEnvironment } from '../environment.js'
import type { Holding, Key, Store, StoreTraits } from '../store.js'
import { type Driver, driverFrom, type SqliteDatabase } from './sqlite/driver.js'
import { type FileCall, LeaseFile, patienceOf } from './sqlite/lease-file.js'
import { type Look, Observer } from './sqlite/observer.js'
import { probe } from './sqlite/probe.js'
import * as transactions from './sqlite/transactions.js'
import { Watchers } from './sqlite/watchers.js'

export type { SqliteDatabase } from './sqlite/driver.js'

export interface SqliteOptions {
  /**
   * The lease file; its folder must exist. A file that is not there is created for its owner only (mode 0600). Must be
   * on a local disk. Where the application opens the same file itself, hand over its database object instead: two
   * copies of SQLite in one process undo each other's locks.
   */
  readonly path: string
  /** Clock and randomness. Default: the system's. */
  readonly environment?: Environment
}

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

  /** A key that is held is answered by reading: those who lose take no lock and write nothing. */
  acquire: Store['acquire'] = async (claim, { signal }) => {
    const observer = this.#observer
    const call = { signal, patienceMs: patienceOf(claim.ttlMs) }
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
      () => ({ kind: 'lost', reason: 'missing' }),
    )
  }

  release: Store['release'] = async ({ key, owner }, call) => {
    const outcome = await this.#file.write(call, 'normal', (transaction) => {
      const outcome = transactions.release(transaction, this.#observer, key, owner, call.keepMs ?? 0)
      this.#pruner.prune(transaction, this.#observer)
      return outcome
    })
    this.#watchers.touch(key)
    return outcome
  }

  revoke: NonNullable<Store['revoke']> = async (key, { force }, call) => {
    const outcome = await this.#file.write(call, 'normal', (transaction) =>
      transactions.revoke(transaction, this.#observer, key, force),
    )
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
      const page = await this.#file.read(call, ({ rows }) => rows.page(start, count + 1))
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

  probe: Store['probe'] = (call) => this.#file.read(call, (session) => probe(session, this.traits, this.#environment))

  async close(): Promise<void> {
    this.#watchers.close()
    await this.#file.close()
  }

  #look(key: Key, call: FileCall): Promise<Look | null> {
    return this.#file.read(call, ({ rows }) => {
      const look = this.#observer.look(rows, key)
      if (look && this.#observer.sightsInMemory && this.#observer.mustSight(look)) this.#observer.sight(rows, look)
      return look && this.#observer.judge(look.row)
    })
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

function checked(
  from: SqliteOptions | SqliteDatabase,
  options: { readonly environment?: Environment },
): { path: string; driver: Driver | undefined; environment: Environment } {
  if (typeof from !== 'object' || from === null) {
    throw new TypeError(
      `sqliteStore: expected { path } or a database of better-sqlite3 or node:sqlite, got ${shown(from)}`,
    )
  }
  const given = 'prepare' in from && typeof from.prepare === 'function'
  const rest: object = given ? options : from
  for (const name of Object.keys(rest)) {
    const known = name === 'environment' || (!given && name === 'path')
    if (!known) throw new TypeError(`sqliteStore: unknown option ${JSON.stringify(name)}; expected path, environment`)
  }
  const { environment = systemEnvironment() } = rest as { environment?: Environment }
  if (given) return { ...driverFrom(from as SqliteDatabase), environment }
  return { path: checkedPath((from as SqliteOptions).path), driver: undefined, environment }
}

function checkedPath(path: unknown): string {
  if (typeof path !== 'string' || path === '' || path.includes('\0') || /^file:/i.test(path)) {
    throw new TypeError(`path: expected the path of a file, got ${shown(path)}`)
  }
  if (path === ':memory:') {
    throw new TypeError(
      'path: expected the path of a file, got ":memory:", which other processes cannot see; use memoryStore()',
    )
  }
  return resolve(path)
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : value === null ? 'null' : typeof value
