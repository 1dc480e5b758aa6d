/** What `sqliteStore` is given, checked on entry. */
import { resolve } from 'node:path'
import { type Environment, systemEnvironment } from '../../environment.js'
import { type Driver, driverFrom, type SqliteDatabase } from './driver.js'

export interface SqliteOptions {
  /**
   * The lease file; its folder must exist. A file that is not there is created for its owner only (mode 0600). Must be
   * on a local disk. Where the application opens the same file itself, hand over its database object instead: two
   * copies of SQLite in one process undo each other's locks. Only an acquisition creates it.
   */
  readonly path: string
  /** Clock and randomness. Default: the system's. */
  readonly environment?: Environment
}

export function checked(
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
  if (typeof path !== 'string' || path === '' || path.includes('\0') || !path.isWellFormed() || /^file:/i.test(path)) {
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
