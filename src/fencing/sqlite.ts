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

export interface SqliteGuard {
  /**
   * Raises the resource's fence to that of the lease. Call it before the first read of what the lease protects:
   * otherwise an older holder's write that is still on its way can land between your read and your write, and its
   * acknowledged update is lost.
   * @throws {StaleFenceError} when a later holder has been here.
   */
  advance(lease: Fenced): void
  /**
   * Runs `write` in a transaction that first checks the lease's fence: an equal or higher one is accepted, a lower one
   * never. Returns what `write` returns. `write` must be synchronous; when it throws, nothing is written.
   * @throws {StaleFenceError} with nothing written, when a later holder has been here.
   */
  write<T>(lease: Fenced, write: () => T): T
}

/** SQLite's integers. */
const MAX_FENCE = 2n ** 63n - 1n

/**
 * A guard for what lives in one SQLite database: a table with the highest fence seen of each resource, checked in the
 * same transaction as the write. A holder that was paused past its TTL comes back with a lower fence and is refused.
 *
 * @param database an open `better-sqlite3` or `node:sqlite` database; the caller keeps and closes it.
 * @param options `resource`: what is protected, default the lease's key. `table`: default `holdfast_fences`.
 */
export function sqliteGuard(
  database: GuardedDatabase,
  options: { resource?: string; table?: string } = {},
): SqliteGuard {
  const { resource, table = 'holdfast_fences' } = options
  if (table === '' || table.includes('\0'))
    throw new RangeError(`table must be a name, but got ${JSON.stringify(table)}`)
  const name = `"${table.replaceAll('"', '""')}"`
  database.exec(`CREATE TABLE IF NOT EXISTS ${name} (resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID`)
  // As text: neither client reads 64-bit integers exactly by default.
  const read = database.prepare(`SELECT CAST(fence AS TEXT) AS fence FROM ${name} WHERE resource = ?`)
  const raise = database.prepare(
    `INSERT INTO ${name} (resource, fence) VALUES (?, ?) ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence`,
  )

  const guarded = <T>(lease: Fenced, write: () => T): T => {
    const { fence } = lease
    if (typeof fence !== 'bigint') throw new TypeError(`fence must be a bigint, but got ${typeof fence}`)
    if (fence < 0n || fence > MAX_FENCE)
      throw new RangeError(`fence must lie between 0n and ${MAX_FENCE}n, but got ${fence}n`)
    const protectedThing = resource ?? lease.key
    database.exec('BEGIN IMMEDIATE')
    try {
      const row = read.get(protectedThing) as { fence: string } | undefined
      const current = BigInt(row?.fence ?? -1)
      if (fence < current) throw new StaleFenceError({ resource: protectedThing, presented: fence, current })
      if (fence > current) raise.run(protectedThing, fence)
      const result = write()
      if (result instanceof Promise)
        throw new TypeError('write must be synchronous: the transaction ends when it returns')
      database.exec('COMMIT')
      return result
    } catch (error) {
      rollback(database)
      throw error
    }
  }

  return { advance: (lease) => guarded(lease, () => undefined), write: guarded }
}

/** A full disk ends the transaction by itself; a second failure must not hide the first. */
function rollback(database: GuardedDatabase): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // Already rolled back.
  }
}
