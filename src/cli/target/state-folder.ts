import { mkdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { CliError, EXIT, usageError } from '../exit.js'

const ELSE = 'give --store sqlite:/path/to/leases.db, or set HOLDFAST_STORE or XDG_STATE_HOME'

/** Where the default lease file lies: folders below `base` are ours to make, `base` itself must be there. */
interface Place {
  readonly base: string
  readonly below: readonly string[]
  /** What names `base`, for people. */
  readonly named: string
}

/**
 * The default lease file, in a private folder that is made here. One folder at a time and never above the user's own
 * ground: a mistyped HOME must not become a folder, and Node's recursive way of making folders never ends under /proc.
 */
export function defaultLeaseFile(): string {
  const { base, below, named } = place()
  requireFolder(base, named)
  let folder = base
  for (const name of below) {
    folder = join(folder, name)
    makeFolder(folder)
  }
  return join(folder, 'leases.db')
}

/** @throws CliError (exit 64) for a user of whom nobody knows a home. */
export function homeFolder(): string {
  try {
    const found = homedir()
    if (isAbsolute(found)) return found
  } catch {
    // Nobody knows this user's home: no different from having none.
  }
  throw usageError(`this user has no home folder to keep the lease file in; ${ELSE}`)
}

function place(): Place {
  const state = process.env.XDG_STATE_HOME
  // The specification says that a relative path is to be ignored.
  if (!state || !isAbsolute(state)) {
    return { base: homeFolder(), below: ['.local', 'state', 'holdfast'], named: 'the home folder' }
  }
  const path = resolve(state)
  return { base: dirname(path), below: [basename(path), 'holdfast'], named: 'the folder above XDG_STATE_HOME' }
}

function requireFolder(path: string, named: string): void {
  try {
    if (statSync(path).isDirectory()) return
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'ENOENT' && code !== 'ENOTDIR')
      throw unusable(`cannot look at ${named}, ${path} (${code}); ${ELSE}`, error)
    throw unusable(`${named}, ${path}, does not exist; make it, or ${ELSE}`, error)
  }
  throw unusable(`${named}, ${path}, is no folder; ${ELSE}`)
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (isFolder(path)) return
    const why = (error as NodeJS.ErrnoException).code ?? String(error)
    throw unusable(`cannot make the folder ${path} for the lease file (${why}); make it, or ${ELSE}`, error)
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

const unusable = (message: string, cause?: unknown): CliError =>
  new CliError(message, { exitCode: EXIT.unavailable, ...(cause !== undefined && { cause }) })
