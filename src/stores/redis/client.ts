/**
 * The one small port to client libraries. Of the client that is given only `duplicate()` is used: connections of our own leave
 * its prefix, its queues, its resends and its type mappings behind, and do not queue behind the application's commands.
 */
import { ioredis, isIoredis } from './ioredis.js'
import { isNodeRedis, nodeRedis } from './node-redis.js'

/** Who asked a question: told one of the two, once. */
export interface Asker {
  answered(reply: unknown): void
  failed(error: unknown): void
}

/** One TCP connection, never reconnected: it ends with the server's life, and so does everything asked of it. */
export interface Wire {
  /** Calls one of them, once. May throw instead. */
  send(args: readonly string[], asker: Asker): void
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  /** Nothing is under way, and from now on only `send` and `destroy` are used: it may take a shorter way. */
  shorten?(): void
  /** Whether it keeps the process running. */
  hold(keepsRunning: boolean): void
  /** At once, without waiting for anything. */
  destroy(): void
}

export interface WireEvents {
  /** It is of no use from now on. May come several times, and before it was ready. */
  ended(error: unknown): void
  message(channel: string, text: string): void
}

export interface RedisClient {
  /** For people, without secrets: `redis at host:port`. */
  readonly place: string
  /** `ready` rejects when it cannot be connected, or may not log in. */
  connect(events: WireEvents): { readonly wire: Wire; readonly ready: Promise<unknown> }
}

/** The least that is asked of an ioredis (5 and newer) or node-redis (4 and newer) client for one server. */
export interface RedisClientLike {
  // biome-ignore lint/suspicious/noExplicitAny: the libraries' own types differ in every version
  duplicate(overrides?: any): any
}

const EXPECTED = 'a client of ioredis (5 or newer) or node-redis (the package redis, 4 or newer) for one server'

const SENTINEL = 'a client of Redis Sentinel, which this version cannot use yet'

/** @throws TypeError for everything else: a wrong client must not look like a store that is down (B016). */
export function clientOf(given: unknown): RedisClient {
  const refuse = (what: string) => new TypeError(`redisStore: expected ${EXPECTED}, but got ${what}`)
  if (typeof given !== 'object' || given === null) throw refuse(given === null ? 'null' : typeof given)
  const members = given as Record<string, unknown>
  if (typeof members.then === 'function') throw refuse('a promise; await it first')
  if (members.isCluster === true || 'slots' in members || typeof members.nodes === 'function')
    throw refuse('a client of a Redis Cluster, which this version cannot use yet')
  if (typeof members.getMasterNode === 'function') throw refuse(SENTINEL)
  if (typeof members.duplicate !== 'function') throw refuse('an object without duplicate()')
  if (isIoredis(members)) {
    if (members.options.sentinels) throw refuse(SENTINEL)
    // An option that 5 has dropped. What nobody tests is better not trusted with leases.
    if ('dropBufferSupport' in members.options) throw refuse('a client of ioredis 4 or older')
    return ioredis(members)
  }
  if (isNodeRedis(members)) return nodeRedis(members)
  throw refuse('an object that is neither (node-redis 3 and older cannot be used)')
}
