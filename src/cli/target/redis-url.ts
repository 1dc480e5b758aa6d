/** What a `redis://` or `rediss://` URL says, and how to write one that says the same. */
import { resolve } from 'node:path'
import { nearest } from '../nearest.js'
import { parseDuration, writtenDuration } from '../text/duration.js'
import { homeFolder } from './state-folder.js'
import { type Credentials, type Endpoint, invalidUrl, urlParts } from './url-parts.js'

/** Settings of the whole fleet, which must reach nested and other processes: that is why they stand in the URL. */
export interface RedisParameters {
  readonly maxTtlMs?: number
  readonly prefix?: string
  readonly allowEviction?: boolean
  /** Absolute paths of PEM files. */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface RedisDescription {
  readonly kind: 'redis'
  /** Exactly one. */
  readonly endpoints: readonly Endpoint[]
  readonly credentials: Credentials | null
  readonly tls: boolean
  readonly database: number
  readonly parameters: RedisParameters
}

type Reader = (url: string, text: string) => RedisParameters

const PARAMETERS: Record<string, Reader> = {
  'max-ttl': (_, text) => ({ maxTtlMs: parseDuration('max-ttl in the URL of the store', text) }),
  prefix: (url, prefix) => {
    if (prefix === '') throw invalidUrl(url, 'prefix must not be empty')
    return { prefix }
  },
  'allow-eviction': (url, text) => {
    if (text !== 'yes' && text !== 'no')
      throw invalidUrl(url, `allow-eviction must be yes or no, but got ${JSON.stringify(text)}`)
    return { allowEviction: text === 'yes' }
  },
  ca: (url, path) => ({ ca: fileOf(url, 'ca', path) }),
  cert: (url, path) => ({ cert: fileOf(url, 'cert', path) }),
  key: (url, path) => ({ key: fileOf(url, 'key', path) }),
}
const OF_TLS = ['ca', 'cert', 'key']
const LOGIN = ['user', 'username', 'password', 'auth']

/** @throws CliError (exit 64) that names what is known. */
export function readRedis(url: string, tls: boolean): RedisDescription {
  const { endpoints, credentials, path, parameters: given } = urlParts(url, 6_379)
  if (endpoints.length === 0) throw invalidUrl(url, 'it names no host')
  if (endpoints.length > 1)
    throw invalidUrl(url, 'one server has one host; write redis+sentinel://h1,h2/master or redis+cluster://h1,h2')
  if (!/^\d{0,6}$/.test(path))
    throw invalidUrl(url, 'what follows the host is the number of a database: redis://host/0')
  let parameters: RedisParameters = {}
  for (const [name, text] of given) {
    const read = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined
    if (!read) throw unknownParameter(url, name)
    if (OF_TLS.includes(name) && !tls) throw invalidUrl(url, `${name} is for rediss://, which is Redis over TLS`)
    parameters = { ...parameters, ...read(url, text) }
  }
  if ((parameters.cert === undefined) !== (parameters.key === undefined))
    throw invalidUrl(url, 'a certificate of the client takes both, cert=/path.pem and key=/path.pem')
  return { kind: 'redis', endpoints, credentials, tls, database: Number(path), parameters }
}

function unknownParameter(url: string, name: string): Error {
  if (LOGIN.includes(name))
    return invalidUrl(url, 'user and password stand before the host: redis://user:password@host')
  const near = nearest(name, Object.keys(PARAMETERS))
  const hint = near === null ? '' : `; did you mean ${near}?`
  return invalidUrl(
    url,
    `it knows no parameter ${JSON.stringify(name)}${hint} (known: ${Object.keys(PARAMETERS).join(', ')})`,
  )
}

function fileOf(url: string, name: string, path: string): string {
  if (path === '' || path.includes('\0')) throw invalidUrl(url, `${name} must be the path of a PEM file`)
  return path.startsWith('~/') ? resolve(homeFolder(), path.slice(2)) : resolve(path)
}

/** The same for whoever reads `HOLDFAST_STORE`, in whatever folder; `login` stands in for user and password. */
export function redisUrl(
  { endpoints, credentials, tls, database, parameters }: RedisDescription,
  login?: string,
): string {
  const hosts = endpoints.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
  const { maxTtlMs, prefix, allowEviction, ca, cert, key } = parameters
  const written = {
    'max-ttl': maxTtlMs === undefined ? undefined : writtenDuration(maxTtlMs),
    prefix,
    'allow-eviction': allowEviction === undefined ? undefined : allowEviction ? 'yes' : 'no',
    ca,
    cert,
    key,
  }
  const query = Object.entries(written).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value).replaceAll('%2F', '/')}`],
  )
  const who = credentials === null ? '' : `${login ?? loginOf(credentials)}@`
  const where = database === 0 ? '' : `/${database}`
  return `redis${tls ? 's' : ''}://${who}${hosts.join(',')}${where}${query.length > 0 ? `?${query.join('&')}` : ''}`
}

const loginOf = ({ username, password }: Credentials): string =>
  [username, ...(password === '' ? [] : [password])].map(encodeURIComponent).join(':')
