/**
 * The driver port: the few members that `node:sqlite` and `better-sqlite3` share. Fences travel as text, so neither
 * needs its mode for big integers.
 */
import { createRequire } from 'node:module'
import { StoreError } from '../../errors.js'

export type Value = string | number | null
export type Row = Record<string, unknown>

export interface Statement {
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
  run(...values: Value[]): unknown
}

export interface Connection {
  prepare(sql: string): Statement
  exec(sql: string): unknown
  close(): unknown
}

type ConnectionClass = new (path: string, options: { timeout: number; fileMustExist: boolean }) => Connection

/**
 * Opens a connection that never waits for a lock by itself: waiting would block the event loop. Creates no file where
 * the driver knows how not to (better-sqlite3).
 */
export type Driver = (path: string) => Connection

export const driverOf = (Connection: ConnectionClass): Driver => {
  return (path) => new Connection(path, { timeout: 0, fileMustExist: true })
}

/** A database object of `better-sqlite3` or `node:sqlite`, as far as it is used: to learn its path and its class. */
export interface SqliteDatabase {
  prepare(sql: string): { all(): unknown[] }
  exec(sql: string): unknown
  close(): unknown
}

/** Where a caller's database is, and how to open another connection to it. The caller's own is not touched again. */
export function driverFrom(database: SqliteDatabase): { driver: Driver; path: string } {
  const files = database.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[]
  const path = files.find((one) => one.name === 'main')?.file
  if (!path) {
    throw new TypeError(
      'database: expected one that is kept in a file, got one in memory, which other processes cannot see; use memoryStore()',
    )
  }
  // The name came as bytes; by the replacement character we would find, and create, another file.
  if (path.includes('\ufffd')) throw new TypeError('database: expected one whose path is valid UTF-8')
  return { driver: driverOf(database.constructor as unknown as ConnectionClass), path }
}

/** `node:sqlite` where Node has it, else `better-sqlite3`. Nothing is loaded before the first call needs it. */
export async function loadDriver(): Promise<Driver> {
  const builtIn = loadBuiltIn()
  if (builtIn) return driverOf(builtIn)
  try {
    // Not a literal: the package is an optional peer, and must be no condition for compiling or bundling this one.
    const name: string = 'better-sqlite3'
    return driverOf(await load(name))
  } catch (cause) {
    throw new StoreError(
      'the SQLite store needs a driver: install better-sqlite3 (npm install better-sqlite3), or use Node 22.13 or newer, which has one built in',
      'none',
      { cause },
    )
  }
}

/** `require` loads it in less time than `import`, by 5 ms of 15. A bundler may have taken away the address that it needs. */
async function load(name: string): Promise<ConnectionClass> {
  const module = (typeof import.meta.url === 'string' ? createRequire(import.meta.url)(name) : await import(name)) as
    | ConnectionClass
    | { default: ConnectionClass }
  return 'default' in module ? module.default : module
}

/** The built-in module announces that it is experimental; that is our business, not a line for our user's stderr. */
function loadBuiltIn(): ConnectionClass | null {
  if (typeof process.getBuiltinModule !== 'function') return null
  const { emitWarning } = process
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (String(warning).includes('SQLite is an experimental feature')) return
    Reflect.apply(emitWarning, process, [warning, ...rest])
  }
  try {
    const module = process.getBuiltinModule('node:sqlite') as { DatabaseSync: ConnectionClass } | undefined
    return module?.DatabaseSync ?? null
  } finally {
    process.emitWarning = emitWarning
  }
}
