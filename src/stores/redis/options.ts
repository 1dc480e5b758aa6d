/** What `redisStore` is given, checked on entry. */
import { type Environment, systemEnvironment } from '../../environment.js'

export interface RedisOptions {
  /**
   * What all keys and channels of this store begin with, up to 64 bytes. Stores with different prefixes do not see
   * each other. Default `'holdfast'`. The `keyPrefix` of a client plays no part.
   */
  readonly prefix?: string
  /**
   * The longest TTL with its lock delay, in ms: **one number for the whole fleet**, since it is also how long a server that came back
   * without its memory grants nothing. Default 30,000; from 1,000 to 86,400,000.
   */
  readonly maxTtlMs?: number
  /**
   * Grant at once after a restart, even if the server may have lost its leases: a holder from before may still be at
   * work, so two may hold. For development. Default `false`.
   */
  readonly trustRestart?: boolean
  /** Grant although the server's eviction policy may throw leases away before their time. Default `false`. */
  readonly allowEviction?: boolean
  /** Clock and randomness. Default: the system's. */
  readonly environment?: Environment
}

export interface Settings {
  readonly prefix: string
  readonly maxTtlMs: number
  readonly trustRestart: boolean
  readonly allowEviction: boolean
  readonly environment: Environment
}

const NAMES = ['prefix', 'maxTtlMs', 'trustRestart', 'allowEviction', 'environment']
export const MAX_TTL_MS = { default: 30_000, min: 1_000, max: 86_400_000 }

/** @throws TypeError for the wrong kind and for unknown names, RangeError for a value out of bounds. */
export function checked(options: RedisOptions): Settings {
  if (typeof options !== 'object' || options === null) throw new TypeError(`redisStore: options must be an object`)
  for (const name of Object.keys(options)) {
    if (!NAMES.includes(name))
      throw new TypeError(`redisStore knows no option ${JSON.stringify(name)}; it knows ${NAMES.join(', ')}`)
  }
  const { environment = systemEnvironment() } = options
  const { prefix = 'holdfast', maxTtlMs = MAX_TTL_MS.default, trustRestart = false, allowEviction = false } = options
  checkPrefix(prefix)
  const bounds = `maxTtlMs must be a whole number of milliseconds between ${MAX_TTL_MS.min} and ${MAX_TTL_MS.max}, but got ${String(maxTtlMs)}`
  if (typeof maxTtlMs !== 'number') throw new TypeError(bounds)
  if (!Number.isInteger(maxTtlMs) || maxTtlMs < MAX_TTL_MS.min || maxTtlMs > MAX_TTL_MS.max)
    throw new RangeError(bounds)
  for (const [name, value] of Object.entries({ trustRestart, allowEviction })) {
    if (typeof value !== 'boolean') throw new TypeError(`${name} must be true or false, but got ${String(value)}`)
  }
  return { prefix, maxTtlMs, trustRestart, allowEviction, environment }
}

function checkPrefix(prefix: unknown): void {
  const expected = 'prefix must be well-formed text of 1 to 64 bytes without braces, control characters and :lease:'
  if (typeof prefix !== 'string') throw new TypeError(`${expected}, but got ${String(prefix)}`)
  const bytes = Buffer.byteLength(prefix)
  if (bytes < 1 || bytes > 64 || !prefix.isWellFormed() || /[{}\p{Cc}]|:lease(?:$|:)/u.test(prefix)) {
    throw new RangeError(`${expected}, but got ${JSON.stringify(prefix)}`)
  }
}
