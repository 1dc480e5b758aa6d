/** What a person can do about a path that does not work. */
import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError, StoreUnsafeError } from '../../errors.js'

/** What SQLite puts beside a database. */
export const COMPANIONS = ['-wal', '-shm', '-journal'] as const

/** What SQLite takes on systems other than Windows: 512 bytes, with the longest name of a companion. */
const MOST_BYTES = 512 - '-journal'.length

/** Before anything is created: a name may be short enough for itself and too long for its companions. */
export function refuseLength(path: string): void {
  if (process.platform !== 'win32' && Buffer.byteLength(path) > MOST_BYTES) throw tooLong(path)
  for (const end of COMPANIONS) lstatSync(path + end, { throwIfNoEntry: false })
}

const tooLong = (path: string, cause?: unknown): StoreError =>
  new StoreError(
    `the path ${path} is too long: SQLite takes at most ${MOST_BYTES} bytes, and most systems 255 for a name, of which 8 are for its -journal`,
    'none',
    { cause },
  )

/** Nothing is at `path`: throws unless its folder is there to hold it, and nothing else is in the way. */
export function refuseNowhere(path: string): void {
  const broken = brokenLink(path)
  if (broken !== null) {
    throw new StoreError(
      `${broken} is a symbolic link to ${readlinkSync(broken)}, which leads nowhere; create what it should lead to, or remove it`,
      'none',
    )
  }
  const folder = dirname(path)
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new StoreError(
      `there is no folder ${folder} for the lease file; create it: mkdir -p ${quoted(folder)}`,
      'none',
    )
  }
}

const quoted = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** The lowest part of the path that there is, if that is a link whose target is missing. */
function brokenLink(path: string): string | null {
  for (let part = path; ; part = dirname(part)) {
    const own = lstatSync(part, { throwIfNoEntry: false })
    if (own?.isSymbolicLink() && !statSync(part, { throwIfNoEntry: false })) return part
    if (own || part === dirname(part)) return null
  }
}

/** What keeps us from working with the file, as far as asking for access tells. */
export function obstacle(path: string): string | null {
  const { R_OK, W_OK, X_OK } = constants
  try {
    const real = realpathSync(path)
    const parts = [dirname(real), real, ...COMPANIONS.map((end) => real + end)]
    for (const [index, part] of parts.entries()) {
      const code = refusal(part, index === 0 ? R_OK | W_OK | X_OK : R_OK | W_OK)
      if (code === 'EROFS') return 'its file system is mounted read-only'
      if (code === 'EACCES' || code === 'EPERM') return `no permission to read and write ${part}`
    }
  } catch {}
  return null
}

function refusal(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

export function explain(error: unknown, path: string): unknown {
  if (error instanceof StoreError || error instanceof StoreUnsafeError) return error
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
    case 'ENOENT':
      return new StoreError(`${path} was deleted while it was opened`, 'none', options)
    case 'ENAMETOOLONG':
      return tooLong(path, error)
    case 'ELOOP':
      return new StoreError(`the symbolic links of ${path} lead in a circle`, 'none', options)
    case undefined:
      return error
    default:
      return new StoreError(`cannot look at ${path}: ${(error as Error).message}`, 'none', options)
  }
}
