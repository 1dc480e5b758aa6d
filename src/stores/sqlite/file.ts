/**
 * The file itself: created privately, refused where locks do not hold, and recognised by device and inode, because it
 * can be deleted or replaced while it is open. Nothing here opens an existing database file: closing any descriptor of
 * it would drop the locks that SQLite holds for this process.
 */
import { closeSync, fsyncSync, openSync, readFileSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError, StoreUnsafeError } from '../../errors.js'
import { isNetwork, mountTypeOf, typeOfMagic } from './mounts.js'

/** What is open: the database and, in WAL mode, its two companions. Whoever lost one of them is alone with the rest. */
export interface FileIdentity {
  readonly main: string
  readonly wal: string | null
  readonly shm: string | null
  /** Permission bits of the database. */
  readonly mode: number
}

const identify = (path: string): { id: string; mode: number; directory: boolean } | null => {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? { id: `${stat.dev}:${stat.ino}`, mode: Number(stat.mode), directory: stat.isDirectory() } : null
}

/** Device and inode of `path` (symbolic links followed) and of what lies beside `real`; `null` when it is gone. */
export function identityOf(path: string, real: string): FileIdentity | null {
  const main = identify(path)
  if (!main) return null
  return {
    main: main.id,
    mode: main.mode & 0o777,
    wal: identify(`${real}-wal`)?.id ?? null,
    shm: identify(`${real}-shm`)?.id ?? null,
  }
}

/**
 * Is what is at `path` still what was opened? About 7 µs. A companion that was not there when we opened is not ours.
 * Throws where it cannot be told (no permission any more): that is no verdict.
 */
export function stillThere(opened: FileIdentity, path: string, real: string): boolean {
  try {
    if (identify(path)?.id !== opened.main) return false
    if (opened.wal !== null && identify(`${real}-wal`)?.id !== opened.wal) return false
    return opened.shm === null || identify(`${real}-shm`)?.id === opened.shm
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false
    throw explain(error, path)
  }
}

/** Makes sure that a file is at `path`, and gives its real path. Throws what a person can act on. */
export function ensureFile(path: string): string {
  try {
    const found = identify(path)
    if (found?.directory) throw new StoreError(`${path} is a folder; the SQLite store needs the path of a file`, 'none')
    if (!found) create(path)
    const real = realpathSync(path)
    refuseNetwork(real)
    return real
  } catch (error) {
    throw explain(error, path)
  }
}

/** Only for its owner, before SQLite sees it: SQLite would create it for everyone, and gives its companions the same mode. */
function create(path: string): void {
  const folder = dirname(path)
  if (!identify(folder)?.directory) {
    throw new StoreError(
      `there is no folder ${folder} for the lease file; create it: mkdir -p ${quoted(folder)}`,
      'none',
    )
  }
  refuseNetwork(realpathSync(folder))
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return
  }
  // The name, too, must survive a power cut, or the fence counter would begin anew. Not every system can.
  try {
    const descriptor = openSync(folder, 'r')
    fsyncSync(descriptor)
    closeSync(descriptor)
  } catch {}
}

const quoted = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

function refuseNetwork(real: string): void {
  const type = fileSystemType(real)
  if (type !== null && isNetwork(type)) {
    throw new StoreUnsafeError(
      `${real} is on a network file system (${type}), where the locks of SQLite do not hold; use a path on a local disk, or a store made for several hosts`,
    )
  }
}

function fileSystemType(real: string): string | null {
  try {
    const type = mountTypeOf(real, readFileSync('/proc/self/mountinfo', 'utf8'))
    if (type !== null && isNetwork(type)) return type
  } catch {}
  try {
    return typeOfMagic(statfsSync(real).type)
  } catch {
    return null
  }
}

function explain(error: unknown, path: string): unknown {
  const options = { cause: error }
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EACCES':
    case 'EPERM':
      return new StoreError(`no permission for ${path} or a folder above it`, 'none', options)
    case 'EROFS':
      return new StoreError(`cannot create ${path}: its file system is mounted read-only`, 'none', options)
    case 'ENOSPC':
    case 'EDQUOT':
      return new StoreError(`no space left to create ${path}`, 'none', options)
    case 'ENOTDIR':
      return new StoreError(`there is no folder for ${path}: a part of the path is a file`, 'none', options)
    case undefined:
      return error
    default:
      // Our own errors have codes, too.
      if (error instanceof StoreError || error instanceof StoreUnsafeError) return error
      return new StoreError(`cannot look at ${path}: ${(error as Error).message}`, 'none', options)
  }
}
