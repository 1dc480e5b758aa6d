/** A real server, and leases on it through the client libraries in turn. All of it ends with the test. */
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AcquireOptions,
  createLeases,
  type Lease,
  type LeaseEvent,
  type Leases,
  type LeasesOptions,
  type Store,
} from '../../src/index.js'
import { type RedisOptions, redisStore } from '../../src/stores/redis.js'
import { now } from './redis-bed.js'
import { type RedisServer, type RedisServerOptions, redisServer } from './servers/redis.js'
import { CLIENTS, type ClientLibrary, type ClientOptions } from './servers/redis-clients.js'

export interface Opening {
  /** Default: another one each time. */
  readonly library?: ClientLibrary
  readonly client?: Partial<ClientOptions>
  readonly store?: RedisOptions
}

export interface Party {
  readonly leases: Leases
  readonly store: Store
  readonly events: LeaseEvent[]
}

export class RedisStage {
  readonly server: RedisServer
  readonly #undo: (() => unknown)[] = []
  #turn = 0

  constructor(server: RedisServer) {
    this.server = server
  }

  /** A server that was started a moment ago is trusted. */
  async store({ library, client: how = {}, store: options }: Opening = {}): Promise<Store> {
    const { open, close } = library ?? (CLIENTS[this.#turn++ % CLIENTS.length] as ClientLibrary)
    const also = { lazyConnect: true, ...how.also }
    const client = await open({ port: this.server.port, connect: false, ...how, also })
    const store = redisStore(client, { trustRestart: true, ...options })
    this.atEnd(async () => {
      await store.close()
      close(client)
    })
    return store
  }

  /** TTL 3 s. */
  async party(opening: Opening = {}, options: LeasesOptions = {}): Promise<Party> {
    const store = await this.store(opening)
    const events: LeaseEvent[] = []
    const leases = createLeases(store, { ttlMs: 3000, observe: (event) => void events.push(event), ...options })
    this.atEnd(() => leases.close().catch(() => {}))
    return { leases, store, events }
  }

  async leases(opening?: Opening, options?: LeasesOptions): Promise<Leases> {
    return (await this.party(opening, options)).leases
  }

  /** In reverse order. */
  atEnd(undo: () => unknown): void {
    this.#undo.push(undo)
  }

  async end(): Promise<void> {
    for (const undo of this.#undo.reverse()) await undo()
    await this.server.end()
  }
}

export async function redisStage(t: TestContext, options?: RedisServerOptions): Promise<RedisStage> {
  const stage = new RedisStage(await redisServer(options))
  t.after(() => stage.end())
  return stage
}

/** A connection that was being opened when a silence ended is given up after 2 s, and another is opened. */
const REACHED_AGAIN_WITHIN_MS = 5000

/** Asks until it is granted: a wait ends when the store cannot even be reached. */
export async function acquireSoon(leases: Leases, key: string, options: AcquireOptions = {}): Promise<Lease> {
  const until = now() + REACHED_AGAIN_WITHIN_MS
  for (;;) {
    try {
      return await leases.acquire(key, { waitMs: Math.ceil(Math.max(until - now(), 0)), ...options })
    } catch (error) {
      if (now() > until) throw error
      await sleep(20)
    }
  }
}
