/** The database as it is, through a driver of our own: what tests ask when they do not want to ask our client. */
import { createRequire } from 'node:module'
import { hrtime } from 'node:process'
import type { Key } from '../../src/store.js'

export interface RawDatabase {
  prepare(sql: string): {
    get(...values: unknown[]): unknown
    all(...values: unknown[]): unknown[]
    run(...values: unknown[]): unknown
  }
  exec(sql: string): unknown
  close(): unknown
}

const Database = createRequire(import.meta.url)('better-sqlite3') as new (path: string, options?: object) => RawDatabase

/** Opens, works, closes. `timeout`: how long SQLite itself waits for locks, in ms. */
export function withRaw<T>(
  path: string,
  work: (database: RawDatabase) => T,
  options: { timeout?: number; readonly?: boolean } = {},
): T {
  const database = new Database(path, { timeout: 5_000, ...options })
  try {
    return work(database)
  } finally {
    database.close()
  }
}

export const openRaw = (path: string, options: { timeout?: number } = {}): RawDatabase => new Database(path, options)

/** What is there now by the clock of this host; `null` when nothing is, or when it is over. */
export function rawLease(path: string, { namespace, name }: Key): { owner: string | null; fence: bigint } | null {
  const row = withRaw(path, (database) =>
    database
      .prepare(
        'SELECT owner, CAST(fence AS TEXT) AS fence, expires FROM holdfast_leases WHERE namespace = ? AND name = ?',
      )
      .get(namespace, name),
  ) as { owner: string | null; fence: string; expires: number } | undefined
  if (!row || row.expires <= Number(hrtime.bigint()) / 1e6) return null
  return { owner: row.owner, fence: BigInt(row.fence) }
}

/** Rows of a table, of one key where named. */
export const count = (path: string, table: string, name?: string): number =>
  withRaw(path, (database) => {
    const where = name === undefined ? '' : ' WHERE name = ?'
    const row = database
      .prepare(`SELECT count(*) AS n FROM ${table}${where}`)
      .get(...(name === undefined ? [] : [name]))
    return (row as { n: number }).n
  })
