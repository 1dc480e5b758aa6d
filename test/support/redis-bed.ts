/** One client library behind a proxy of its own, before a real server: what the tests of a bad connection need. */
import { type TcpProxy, tcpProxy } from '../../src/faults/index.js'
import { createLeases, type LeaseEvent, type Leases, type LeasesOptions, systemEnvironment } from '../../src/index.js'
import type { Store } from '../../src/store.js'
import { type RedisOptions, redisStore } from '../../src/stores/redis.js'
import type { RedisServer } from './servers/redis.js'
import type { ClientLibrary } from './servers/redis-clients.js'

const { clock } = systemEnvironment()
/** The clock by which leases are held, and by which beliefs are judged. */
export const now = (): number => clock.now()

export interface RedisBed {
  readonly proxy: TcpProxy
  readonly leases: Leases
  readonly events: LeaseEvent[]
  end(): Promise<void>
}

export interface RedisBedOptions extends LeasesOptions {
  readonly store?: RedisOptions
  /** Put between the store and its leases. */
  readonly wrap?: (store: Store) => Store
}

/** A server that was started a moment ago is trusted: what a restart means is not asked here. */
export async function redisBed(
  server: RedisServer,
  { open, close }: ClientLibrary,
  { store = {}, wrap = (each) => each, ...options }: RedisBedOptions = {},
): Promise<RedisBed> {
  const proxy = await tcpProxy({ port: server.port })
  const client = await open({ port: proxy.port })
  const events: LeaseEvent[] = []
  const leases = createLeases(wrap(redisStore(client, { trustRestart: true, ...store })), {
    ttlMs: 1000,
    observe: (event) => void events.push(event),
    ...options,
  })
  return {
    proxy,
    leases,
    events,
    async end() {
      proxy.heal()
      await leases.close().catch(() => {})
      close(client)
      await proxy.close()
    },
  }
}

/** The owner that the server has for a key of the default namespace; `%` for a tombstone, `null` when it is free. */
export async function ownerAt(server: RedisServer, key: string): Promise<string | null> {
  const value = await server.send('GET', `holdfast:lease:default:${key}`)
  if (value === null) return null
  const [, owner] = /^hf1 (\S+) /.exec(`${value}`) ?? []
  if (owner === undefined) throw new Error(`not a lease: ${value}`)
  return owner
}

/**
 * How long it took to settle, in ms, and how. `lateMs`: by how much it exceeded the limit, or the moment at which a plain
 * timer of the same length fired: what a loaded machine does to every timer is not held against this one.
 */
export async function timing<T>(
  work: Promise<T>,
  limitMs: number,
): Promise<{ ms: number; lateMs: number; value?: T; error?: unknown }> {
  const began = now()
  let plainMs = limitMs
  const plain = setTimeout(() => {
    plainMs = now() - began
  }, limitMs)
  const taken = () => {
    const ms = now() - began
    clearTimeout(plain)
    return { ms, lateMs: ms - plainMs }
  }
  return work.then(
    (value) => ({ ...taken(), value }),
    (error) => ({ ...taken(), error }),
  )
}
