import { StaleFenceError } from '../errors.js'

/** A lease, or its key and fence received from elsewhere. Fences of different stores do not compare. */
export interface Fenced {
  readonly key: string
  readonly fence: bigint
}

/** The members used of a `better-sqlite3` or `node:sqlite` database. */
export interface GuardedDatabase {
  exec(sql: string): unknown
  prepare(sql: string): { get(...params: unknown[]): unknown; run(...params: unknown[]): unknown }
}

export interface SqliteGuardOptions {
  /** What is protected. Default: the lease's key. */
  readonly resource?: string
  /** Where the fences are kept. Default: `holdfast_fences`. */
  readonly table?: string
}

/** A function that works at once: what a promise would do later, nothing would guard. */
export type SynchronousWrite<T> = (() => T) &
  ([T] extends [never] ? unknown : T extends PromiseLike<unknown> ? never : unknown)

export interface SqliteGuard {
  /**
   * Raises the resource's fence to that of the lease. Call it before the first read of what the lease protects:
   * otherwise an older holder's write that is still on its way can land between your read and your write, and its
   * acknowledged update is lost.
   * @throws {StaleFenceError} when a later holder has been here.
   */
  advance(lease: Fenced): void
  /**
   * Runs `write` in a transaction of its own that first checks the lease's fence: an equal or higher one is accepted, a
   * lower one never. Returns what `write` returns. When it throws, nothing is written.
   * The dangerous case: `write` must be synchronous. An async function is refused, and so is whatever returns a
   * thenable (a lazy query), but what such a function does after its first `await` cannot be taken back.
   * @throws {StaleFenceError} with nothing written, when a later holder has been here.
   */
  write<T>(lease: Fenced, write: SynchronousWrite<T>): T
}

/** SQLite's integers. */
const MAX_FENCE = 2n ** 63n - 1n
const AsyncFunction = (async () => {}).constructor

/**
 * A guard for what lives in one SQLite database: a table with the highest fence seen of each resource, checked in the
 * same transaction as the write. A holder that was paused past its TTL comes back with a lower fence and is refused.
 *
 * @param database an open `better-sqlite3` or `node:sqlite` database; the caller keeps and closes it. It must not be in
 * a transaction when the guard is used.
 */
export function sqliteGuard(database: GuardedDatabase, options: SqliteGuardOptions = {}): SqliteGuard {
  const { resource, table } = checked(database, options)
  const name = `"${table.replaceAll('"', '""')}"`
  database.exec(`CREATE TABLE IF NOT EXISTS ${name} (resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID`)
  // As text: neither client reads 64-bit integers exactly by default.
  const read = database.prepare(`SELECT CAST(fence AS TEXT) AS fence FROM ${name} WHERE resource = ?`)
  const raise = database.prepare(
    `INSERT INTO ${name} (resource, fence) VALUES (?, ?) ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence`,
  )

  const guarded = <T>(lease: Fenced, write: () => T): T => {
    const { key, fence } = checkedLease(lease)
    if (typeof write !== 'function') throw new TypeError(`write must be a function, but got ${typeof write}`)
    if (write instanceof AsyncFunction) throw notSynchronous()
    const protectedThing = resource ?? key
    begin(database)
    try {
      const row = read.get(protectedThing) as { fence: string } | undefined
      const current = BigInt(row?.fence ?? -1)
      if (fence < current) throw new StaleFenceError({ resource: protectedThing, presented: fence, current })
      if (fence > current) raise.run(protectedThing, fence)
      const result = write()
      if (isThenable(result)) throw notSynchronous()
      database.exec('COMMIT')
      return result
    } catch (error) {
      rollback(database)
      throw error
    }
  }

  return { advance: (lease) => guarded(lease, () => undefined), write: guarded }
}

function checked(database: unknown, options: unknown): { resource: string | undefined; table: string } {
  const usable = isObject(database) && typeof database.exec === 'function' && typeof database.prepare === 'function'
  if (!usable) throw new TypeError('database must be an open database of better-sqlite3 or node:sqlite')
  if (!isObject(options)) throw new TypeError(`options must be an object, but got ${typeof options}`)
  for (const option of Object.keys(options)) {
    if (option !== 'resource' && option !== 'table') {
      throw new TypeError(`sqliteGuard knows no option ${JSON.stringify(option)}; it knows resource, table`)
    }
  }
  const { resource, table = 'holdfast_fences' } = options
  for (const [option, value] of Object.entries({ ...(resource !== undefined && { resource }), table })) {
    if (typeof value !== 'string' || value === '' || value.includes('\0') || !value.isWellFormed()) {
      throw new TypeError(`${option} must be a non-empty name, but got ${JSON.stringify(value) ?? typeof value}`)
    }
  }
  return { resource: resource as string | undefined, table: table as string }
}

function checkedLease(lease: unknown): Fenced {
  const { key, fence } = isObject(lease) ? lease : {}
  if (typeof key !== 'string' || typeof fence !== 'bigint') {
    throw new TypeError(`lease must be a lease, or { key, fence } with a bigint, but its fence is ${typeof fence}`)
  }
  if (fence < 0n || fence > MAX_FENCE) {
    throw new RangeError(`fence must lie between 0n and ${MAX_FENCE}n, but got ${fence}n`)
  }
  return { key, fence }
}

function begin(database: GuardedDatabase): void {
  // Their names differ: better-sqlite3, node:sqlite.
  const { inTransaction, isTransaction } = database as { inTransaction?: boolean; isTransaction?: boolean }
  if (inTransaction || isTransaction) {
    throw new Error('the guard needs a transaction of its own, and the database is in one: write inside guard.write')
  }
  database.exec('BEGIN IMMEDIATE')
}

/** A full disk ends the transaction by itself; a second failure must not hide the first. */
function rollback(database: GuardedDatabase): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // Already rolled back.
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const isThenable = (value: unknown): boolean => isObject(value) && typeof value.then === 'function'
const notSynchronous = () => new TypeError('write must be synchronous: the transaction ends when it returns')
