/**
 * Is it still the file that was opened? Told by device and inode, because it can be deleted, replaced, moved or given a
 * second name while it is open. SQLite puts the log beside the name by which it opened the file, so a file with two
 * names has two logs, and those who use one name do not see the leases of the other.
 */
import { type BigIntStats, lstatSync, statSync } from 'node:fs'
import { StoreUnsafeError } from '../../errors.js'
import { explain } from './paths.js'

/** What is open: the database and, in WAL mode, its two companions. Whoever lost one of them is alone with the rest. */
export interface FileIdentity {
  readonly main: string
  readonly wal: string | null
  readonly shm: string | null
  /** Permission bits of the database. */
  readonly mode: number
}

const options = { bigint: true, throwIfNoEntry: false } as const
const idOf = (stat: BigIntStats | undefined): string | null => (stat ? `${stat.dev}:${stat.ino}` : null)

/** Device and inode of what `path` itself is (`own`), or of what it leads to; `null` where nothing is. */
export const idAt = (path: string, own: boolean): string | null =>
  idOf(own ? lstatSync(path, options) : statSync(path, options))

/** `null` when `path` does not lead to `real`, or `real` is gone. */
export function identityOf(path: string, real: string): FileIdentity | null {
  const stat = lstatSync(real, options)
  const main = idOf(stat)
  if (!stat || main === null || (path !== real && idAt(path, false) !== main)) return null
  return { main, mode: Number(stat.mode) & 0o777, wal: idAt(`${real}-wal`, true), shm: idAt(`${real}-shm`, true) }
}

/**
 * About 7 µs. `real`, which has no symbolic links, must itself be the file: if it was moved and a link left in its
 * place, newcomers use the log beside the new name. A companion that was not there when we opened is not ours.
 * Throws where it cannot be told (no permission any more), and while the file has a second name: that is no verdict.
 */
export function stillThere(opened: FileIdentity, path: string, real: string): boolean {
  try {
    const stat = lstatSync(real, options)
    if (!stat || idOf(stat) !== opened.main) return false
    if (path !== real && idAt(path, false) !== opened.main) return false
    if (opened.wal !== null && idAt(`${real}-wal`, true) !== opened.wal) return false
    if (opened.shm !== null && idAt(`${real}-shm`, true) !== opened.shm) return false
    refuseLinks(stat, real)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false
    throw explain(error, path)
  }
}

export function refuseLinks({ nlink }: { nlink: bigint }, path: string): void {
  if (nlink <= 1n) return
  throw new StoreUnsafeError(
    `${path} has ${nlink} names (hard links), and those who use another name would not see its leases; remove the others, or copy the file to a name of its own`,
  )
}
