import { resolve } from 'node:path'
import { usageError } from '../exit.js'
import { nearest } from '../nearest.js'
import { redactUrl } from '../redact.js'
import { type RedisDescription, readRedis } from './redis-url.js'
import { homeFolder } from './state-folder.js'
import { type Credentials, decode, type Endpoint, invalidUrl, type UrlParts, urlParts } from './url-parts.js'

export { redactUrl } from '../redact.js'

interface Server {
  readonly endpoints: readonly Endpoint[]
  readonly credentials: Credentials | null
}

/** What a store URL says, typed: everything that opening the store needs. */
export type StoreDescription =
  | { readonly kind: 'sqlite'; readonly path: string }
  | RedisDescription
  | (Server & { readonly kind: 'redis-sentinel'; readonly master: string })
  | (Server & { readonly kind: 'redis-cluster' })
  /** Drivers read the URL themselves. */
  | (Server & { readonly kind: 'postgres' | 'mysql'; readonly url: string; readonly database: string })
  | (Server & { readonly kind: 'etcd'; readonly tls: boolean })
  | (Server & { readonly kind: 'zookeeper'; readonly chroot: string })
  /** Set by `run --no-inherit-store`: a nested call must name its own store. */
  | { readonly kind: 'refuse' }

type Reader = (url: string) => StoreDescription

const READERS: Record<string, Reader> = {
  sqlite: readSqlite,
  redis: (url) => readRedis(url, false),
  rediss: (url) => readRedis(url, true),
  'redis+sentinel': (url) => {
    const parts = server(url, 26_379)
    if (parts.path === '' || parts.path.includes('/'))
      throw invalidUrl(url, 'name the master after the hosts: redis+sentinel://h1,h2/mymaster')
    return { kind: 'redis-sentinel', ...whom(parts), master: parts.path }
  },
  'redis+cluster': (url) => ({ kind: 'redis-cluster', ...whom(withoutPath(url, server(url, 6_379))) }),
  postgres: (url) => sql('postgres', url, 5_432),
  postgresql: (url) => sql('postgres', url, 5_432),
  mysql: (url) => sql('mysql', url, 3_306),
  etcd: (url) => ({ kind: 'etcd', ...whom(withoutPath(url, server(url, 2_379))), tls: false }),
  etcds: (url) => ({ kind: 'etcd', ...whom(withoutPath(url, server(url, 2_379))), tls: true }),
  zookeeper: (url) => {
    const parts = server(url, 2_181)
    return { kind: 'zookeeper', ...whom(parts), chroot: parts.path === '' ? '' : `/${parts.path}` }
  },
  refuse: () => ({ kind: 'refuse' }),
}

export const KNOWN_SCHEMES = Object.keys(READERS).filter((scheme) => scheme !== 'refuse')

/** @throws CliError (exit 64) that says what is wrong, without the URL's password. */
export function parseStoreUrl(url: string): StoreDescription {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  const known = KNOWN_SCHEMES.map((each) => `${each}:`).join(' ')
  if (scheme === undefined) {
    throw usageError(
      `store ${JSON.stringify(redactUrl(url))} is no URL: it begins with one of ${known} (a file: sqlite:path)`,
    )
  }
  const reader = Object.hasOwn(READERS, scheme) ? READERS[scheme] : undefined
  if (!reader) {
    const near = nearest(scheme, KNOWN_SCHEMES)
    throw usageError(`no store has the scheme ${scheme}:${near ? `; did you mean ${near}:?` : ''} (known: ${known})`)
  }
  return reader(url)
}

/** `sqlite:relative/path`, `sqlite:/path`, `sqlite:///path`, `sqlite:~/path`. */
function readSqlite(url: string): StoreDescription {
  const text = url.slice('sqlite:'.length)
  if (text.startsWith('//') && !text.startsWith('///')) {
    throw invalidUrl(url, 'a file has no host: write sqlite:relative/path or sqlite:/absolute/path')
  }
  if (text.includes('?')) throw invalidUrl(url, 'sqlite: takes no parameters (write a ? in a path as %3F)')
  const path = decode(url, text.replace(/^\/{3}/, '/'))
  if (path === '') throw invalidUrl(url, 'name the file: sqlite:path')
  if (path.startsWith(':memory')) throw invalidUrl(url, 'other processes cannot see a database in memory; name a file')
  return { kind: 'sqlite', path: path.startsWith('~/') ? resolve(homeFolder(), path.slice(2)) : resolve(path) }
}

/** The URL of a file that every reader of `HOLDFAST_STORE` understands, in whatever folder it runs. */
export const sqliteUrl = (path: string): string =>
  `sqlite:${path.replace(/[\s%?\p{Cc}]/gu, (character) => encodeURIComponent(character))}`

/** Where it is, for people. */
export function describeStore(store: StoreDescription): string {
  if (store.kind === 'sqlite') return store.path
  if (store.kind === 'refuse') return 'refuse:'
  const hosts = store.endpoints.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
  const database = store.kind === 'redis' && store.database !== 0 ? `, database ${store.database}` : ''
  return `${store.kind} at ${hosts.join(',') || 'its default address'}${database}`
}

const whom = ({ endpoints, credentials }: UrlParts): Server => ({ endpoints, credentials })

function server(url: string, port: number): UrlParts {
  const parts = urlParts(url, port)
  if (parts.endpoints.length === 0) throw invalidUrl(url, 'it names no host')
  if (parts.parameters.size > 0) throw invalidUrl(url, 'it takes no parameters after ?')
  return parts
}

function withoutPath(url: string, parts: UrlParts): UrlParts {
  if (parts.path !== '') throw invalidUrl(url, 'nothing may follow the hosts')
  return parts
}

/** Without a host the driver's own default stands (a socket in its usual place, or `?host=`). */
function sql(kind: 'postgres' | 'mysql', url: string, port: number): StoreDescription {
  const parts = urlParts(url, port)
  return { kind, ...whom(parts), url, database: parts.path }
}
