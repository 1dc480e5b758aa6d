/** What a driver's error means here: one line for people, and what may have happened. */
import { StoreError, StoreUnsafeError } from '../../errors.js'
import { obstacle } from './paths.js'

/** Primary result codes of SQLite, by number, as far as they are told apart. */
const NAMES: Record<number, string> = {
  3: 'PERM',
  5: 'BUSY',
  6: 'LOCKED',
  8: 'READONLY',
  10: 'IOERR',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
  15: 'PROTOCOL',
  26: 'NOTADB',
}

/** `BUSY` for `better-sqlite3`'s `SQLITE_BUSY_SNAPSHOT` and for `node:sqlite`'s number 517; `null` for what is not SQLite's. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return NAMES[errcode & 0xff] ?? String(errcode)
  if (typeof code === 'string' && code.startsWith('SQLITE_')) return code.split('_')[1] ?? code
  return null
}

/** Certainly not executed, and likely to work in a moment. `PROTOCOL`: many processes open or recover at once. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === 'BUSY' || code === 'LOCKED' || code === 'PROTOCOL'
}

/**
 * `committing`: a commit whose last write or flush failed may still be found by whoever recovers the file after a
 * crash. A full disk is no such case: the commit mark itself was not written.
 */
export function failure(error: unknown, path: string, committing: boolean): unknown {
  const code = sqliteCode(error)
  if (code === null) return error
  const options = { cause: error }
  const detail = (error as Error).message
  switch (code) {
    case 'NOTADB':
      return new StoreUnsafeError(
        `${path} is not a SQLite database; choose another path, or move that file away`,
        options,
      )
    case 'CORRUPT':
      return new StoreUnsafeError(
        `${path} is damaged (${detail}); stop what uses it, move it and its -wal and -shm away, and it is created anew`,
        options,
      )
    case 'FULL':
      return new StoreError(`no space left to write ${path}; nothing was changed`, 'none', options)
    case 'READONLY':
      return new StoreError(
        `cannot write ${path}: ${obstacle(path) ?? 'the file, its folder or its mount is read-only for us'}`,
        'none',
        options,
      )
    case 'PERM':
    case 'CANTOPEN': {
      const why =
        obstacle(path) ?? `${detail}; it, its folder and its -wal and -shm must be readable and writable for us`
      return new StoreError(`cannot open ${path}: ${why}`, 'none', options)
    }
    default: {
      const effect = committing ? 'unknown' : 'none'
      return new StoreError(`SQLite failed on ${path} (${code}: ${detail})`, effect, options)
    }
  }
}
