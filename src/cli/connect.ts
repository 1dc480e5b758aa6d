import { existsSync, mkdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import type { Store } from '../store.js'
import { optionOf, type Parsed } from './args.js'
import { CliError, EXIT, usageError } from './exit.js'
import { redactUrl } from './redact.js'
import { shellLine } from './shell.js'
import { describeStore, parseStoreUrl, type StoreDescription, sqliteUrl } from './store-url.js'

/** The store that was asked for, not opened yet. */
export interface Target {
  readonly description: StoreDescription
  /** For people, without passwords. */
  readonly place: string
  /** For `HOLDFAST_STORE` of a command that runs under a lease. */
  readonly url: string
  readonly namespace: string | undefined
  /** What somebody must add to a command so that it asks the same store, redacted. */
  readonly again: readonly string[]
}

/** `--store`, else `HOLDFAST_STORE`, else a file in the user's state directory. */
export function targetOf(parsed: Parsed): Target {
  const given = parsed.options.get('store') ?? []
  const inherited = (process.env.HOLDFAST_STORE ?? '').split(/\s+/).filter((word) => word !== '')
  const urls = given.length > 0 ? given : inherited
  if (urls.length > 1) {
    throw usageError(
      `several stores make a quorum, which this version cannot do yet; give one --store (${urls.length} were given)`,
    )
  }
  const url = urls[0]
  const description: StoreDescription = url === undefined ? { kind: 'sqlite', path: defaultPath() } : parseStoreUrl(url)
  if (description.kind === 'refuse') {
    throw usageError(
      'HOLDFAST_STORE is refuse: (set by run --no-inherit-store), so nothing says which store to ask; give --store URL',
    )
  }
  if (description.kind !== 'sqlite') {
    throw usageError(
      `${describeStore(description)}: this version has no store for ${description.kind} yet; use sqlite:path`,
    )
  }
  if (url === undefined) makePrivateFolder(dirname(description.path))
  const namespace = optionOf(parsed, 'namespace')
  const again = [
    ...(given[0] === undefined ? [] : ['--store', redactUrl(given[0])]),
    ...(namespace === undefined ? [] : ['--namespace', namespace]),
  ]
  return { description, place: describeStore(description), url: sqliteUrl(description.path), namespace, again }
}

/** Drivers are loaded here, and only the one that is used. */
export async function openStore({ description }: Target): Promise<Store> {
  if (description.kind !== 'sqlite') throw usageError(`this version has no store for ${description.kind} yet`)
  const { sqliteStore } = await import('../stores/sqlite.js')
  return sqliteStore({ path: description.path })
}

/** A file that is not there holds nothing; looking must not create it, or a mistyped path would look like an answer. */
export const isAbsent = ({ description }: Target): boolean =>
  description.kind === 'sqlite' && isFolder(dirname(description.path)) && !existsSync(description.path)

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** A command line for a person to type next. */
export const suggest = (target: Target, command: string, key: string, ...more: string[]): string =>
  shellLine(['holdfast', command, ...target.again, ...more, ...(key.startsWith('-') ? ['--'] : []), key])

function defaultPath(): string {
  const state = process.env.XDG_STATE_HOME
  // The specification says that a relative path is to be ignored.
  const base = state && isAbsolute(state) ? state : join(home(), '.local/state')
  return join(base, 'holdfast/leases.db')
}

function home(): string {
  const advice = 'give --store sqlite:/path/to/leases.db, or set HOLDFAST_STORE'
  try {
    const found = homedir()
    if (isAbsolute(found)) return found
  } catch {
    // Nobody knows this user's home: no different from having none.
  }
  throw usageError(`this user has no home folder to keep the lease file in; ${advice}`)
}

function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new CliError(
      `cannot make the folder ${folder} for the lease file (${why}); make it, give --store sqlite:path, or set XDG_STATE_HOME`,
      { exitCode: EXIT.unavailable, cause: error },
    )
  }
}
