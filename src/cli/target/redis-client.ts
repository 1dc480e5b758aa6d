/** A client for `redisStore`, of the library that is installed. It is never connected: the store duplicates it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { RedisClientLike } from '../../stores/redis.js'
import { CliError, EXIT, usageError } from '../exit.js'
import { muteLibraries } from '../text/output.js'
import type { RedisDescription } from './redis-url.js'

interface Library {
  readonly name: string
  /** The first major version that will do. */
  readonly from: number
  /** What it exports, and the client that this makes. */
  readonly client: (library: never, description: RedisDescription) => RedisClientLike
}

type Ioredis = new (options: object) => RedisClientLike
interface NodeRedis {
  readonly createClient: (options: object) => RedisClientLike
}

/** In this order: ioredis is loaded in half the time. */
const LIBRARIES: readonly Library[] = [
  {
    name: 'ioredis',
    from: 5,
    client: ({ default: Redis }: { readonly default: Ioredis }, { database, ...description }) => {
      const { host, port } = endpointOf(description)
      const tls = tlsOf(description)
      return new Redis({ host, port, ...loginOf(description), db: database, ...(tls && { tls }), lazyConnect: true })
    },
  },
  {
    name: 'redis',
    from: 4,
    client: ({ createClient }: NodeRedis, { database, ...description }) => {
      const tls = tlsOf(description)
      const socket = { ...endpointOf(description), ...(tls && { ...tls, tls: true }) }
      return createClient({ socket, ...loginOf(description), database })
    },
  },
]

/**
 * Libraries are looked for where holdfast is installed, never in the current folder: a job of root may run anywhere, and
 * code that lies there must not become part of it.
 * @throws CliError (exit 69) that says what to install, or (exit 64) when a file of TLS cannot be read.
 */
export function redisClient(description: RedisDescription): RedisClientLike {
  // They write to the console: of a password that was not needed, and with DEBUG of every command, passwords too.
  muteLibraries()
  const load = createRequire(import.meta.url)
  const tooOld: string[] = []
  for (const { name, from, client } of LIBRARIES) {
    const version = versionOf(load, name)
    if (version === null) continue
    if (Number.parseInt(version, 10) >= from) return client(load(name) as never, description)
    tooOld.push(`${name} ${version} is too old`)
  }
  const found = tooOld.length > 0 ? ` (${tooOld.join(', ')})` : ''
  throw new CliError(
    `redis:// needs a client library beside holdfast, and there is none${found}: npm install ioredis, or npm install --global ioredis where holdfast is global`,
    { exitCode: EXIT.unavailable },
  )
}

function versionOf(load: NodeJS.Require, name: string): string | null {
  try {
    return String((load(`${name}/package.json`) as { version: unknown }).version)
  } catch {
    return null
  }
}

function endpointOf({ endpoints }: Pick<RedisDescription, 'endpoints'>): { host: string; port: number } {
  const [endpoint] = endpoints
  if (!endpoint) throw new Error('a description of Redis without a host')
  return endpoint
}

function loginOf({ credentials }: Pick<RedisDescription, 'credentials'>): { username?: string; password?: string } {
  if (credentials === null) return {}
  const { username, password } = credentials
  return username === '' ? { password } : { username, password }
}

function tlsOf({ tls, parameters }: Pick<RedisDescription, 'tls' | 'parameters'>): Record<string, Buffer> | null {
  if (!tls) return null
  const files = (['ca', 'cert', 'key'] as const).flatMap((name) => {
    const path = parameters[name]
    return path === undefined ? [] : [[name, pem(name, path)] as const]
  })
  return Object.fromEntries(files)
}

function pem(name: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? String(cause)
    throw usageError(`cannot read ${path} (${why}), which the URL of the store names with ${name}=`, { cause })
  }
}
