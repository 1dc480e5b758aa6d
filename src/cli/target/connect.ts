import type { Store } from '../../store.js'
import { optionOf, type Parsed } from '../args.js'
import { asUsage } from '../as-usage.js'
import { usageError } from '../exit.js'
import { redactUrl } from '../redact.js'
import { shellLine } from '../shell.js'
import { type RedisDescription, redisUrl } from './redis-url.js'
import { defaultLeaseFile } from './state-folder.js'
import { describeStore, parseStoreUrl, type StoreDescription, sqliteUrl } from './store-url.js'

/** The stores that there are. */
type Openable = Extract<StoreDescription, { readonly kind: 'sqlite' | 'redis' }>

/** The store that was asked for, not opened yet. */
export interface Target {
  readonly description: Openable
  /** For people, without passwords. */
  readonly place: string
  /** For `HOLDFAST_STORE` of a command that runs under a lease: with its password, so never for people. */
  readonly url: string
  readonly namespace: string | undefined
  /** What somebody must add to a command so that it asks the same store, redacted. */
  readonly again: readonly string[]
}

/** `--store`, else `HOLDFAST_STORE`, else a file in the user's state directory. */
export function targetOf(parsed: Parsed): Target {
  const given = parsed.options.get('store') ?? []
  const urls = given.length > 0 ? given : inherited()
  if (urls.length > 1) {
    throw usageError(
      `several stores make a quorum, which this version cannot do yet; give one --store (${urls.length} were given)`,
    )
  }
  const url = urls[0]
  const description: StoreDescription =
    url === undefined ? { kind: 'sqlite', path: defaultLeaseFile() } : parseStoreUrl(url)
  if (description.kind === 'refuse') {
    throw usageError(
      given.length > 0
        ? '--store refuse: names no store: it is what run --no-inherit-store tells its command; give --store sqlite:path'
        : 'HOLDFAST_STORE is refuse: (set by run --no-inherit-store), so nothing says which store to ask; give --store URL',
    )
  }
  if (description.kind !== 'sqlite' && description.kind !== 'redis') {
    throw usageError(
      `${describeStore(description)}: this version has no store for ${description.kind} yet; use sqlite:path or redis://host`,
    )
  }
  const namespace = optionOf(parsed, 'namespace')
  const again = [
    ...(given[0] === undefined ? [] : ['--store', shownUrl(description, given[0])]),
    ...(namespace === undefined ? [] : ['--namespace', namespace]),
  ]
  const place = describeStore(description)
  const nested = description.kind === 'sqlite' ? sqliteUrl(description.path) : redisUrl(description)
  return { description, place, url: nested, namespace, again }
}

/** As it was given; of Redis no parameter is secret, and each is needed to ask the same store again. */
const shownUrl = (description: Openable, given: string): string =>
  description.kind === 'redis' ? redisUrl(description, '***') : redactUrl(given)

/** A variable that is set but names nothing is a mistake of whoever set it: silently asking another store would hide it. */
function inherited(): readonly string[] {
  const text = process.env.HOLDFAST_STORE
  if (text === undefined) return []
  const urls = text.split(/\s+/).filter((word) => word !== '')
  if (urls.length > 0) return urls
  throw usageError(
    `HOLDFAST_STORE is set but ${text === '' ? 'empty' : 'blank'}; set it to a store URL, or unset it to use the private file`,
  )
}

/** Drivers are loaded here, and only the one that is used. */
export async function openStore({ description }: Target, options: OpenOptions = {}): Promise<Store> {
  if (description.kind === 'redis') return openRedis(description, options)
  if (options.trustRestart) {
    throw usageError(
      '--trust-restart is for redis:// and rediss://: a lease file is still there after a restart, and nothing waits; leave it out',
    )
  }
  const { sqliteStore } = await import('../../stores/sqlite.js')
  return sqliteStore({ path: description.path })
}

interface OpenOptions {
  readonly trustRestart?: boolean
}

async function openRedis(description: RedisDescription, { trustRestart = false }: OpenOptions): Promise<Store> {
  const { redisClient } = await import('./redis-client.js')
  const { redisStore } = await import('../../stores/redis.js')
  const { maxTtlMs, prefix, allowEviction } = description.parameters
  const given = {
    ...(maxTtlMs !== undefined && { maxTtlMs }),
    ...(prefix !== undefined && { prefix }),
    ...(allowEviction !== undefined && { allowEviction }),
    trustRestart,
  }
  const client = redisClient(description)
  return asUsage(() => redisStore(client, given))
}

/** The way out where the store allows no lease so long: a clause for the end of a message. */
export const longerTtl = ({ description }: Target): string =>
  description.kind === 'redis'
    ? '; for longer ones end the URL of the store in ?max-ttl=5m, say, for everybody who uses this server: so long does it grant nothing after a restart'
    : ''

/** A command line for a person to type next. */
export const suggest = (target: Target, command: string, key: string, ...more: string[]): string =>
  shellLine(['holdfast', command, ...target.again, ...more, ...(key.startsWith('-') ? ['--'] : []), key])
