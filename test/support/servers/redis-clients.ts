/**
 * The client libraries, each as its user would have it: the library's own defaults, an error listener, and what the test
 * gives besides; each is loaded when it is first used. Untyped at this border, because five versions of two libraries share no type.
 */
import { once } from 'node:events'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

export interface ClientOptions {
  readonly port: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  readonly username?: string
  readonly password?: string
  readonly database?: number
  readonly tls?: { readonly ca: string }
  /** Resolves once it is connected. `false`: does not even connect, where the library leaves that to its user. */
  readonly connect?: boolean
  /** Further options, by the library's own names: `{ keyPrefix: 'app:' }`. */
  readonly also?: Readonly<Record<string, unknown>>
}

/** What all of them have; a store asks for no more. */
export interface TestClient {
  // biome-ignore lint/suspicious/noExplicitAny: whatever its library makes of it
  duplicate(...args: any[]): any
}

export interface ClientLibrary {
  readonly name: 'ioredis 5' | 'ioredis 6' | 'node-redis 4' | 'node-redis 5' | 'node-redis 6'
  open(options: ClientOptions): Promise<TestClient>
  /** At once and whatever state it is in. */
  close(client: TestClient): void
}

const given = (values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

interface IoRedis extends TestClient, NodeJS.EventEmitter {
  disconnect(): void
}

function ioredis(name: ClientLibrary['name'], module: string): ClientLibrary {
  return {
    name,
    async open({ port, host = '127.0.0.1', username, password, database, tls, connect = true, also = {} }) {
      const { Redis } = require(module) as { Redis: new (options: object) => IoRedis }
      const auth = given({ username, password, db: database, tls })
      const client = new Redis({ port, host, ...auth, ...also })
      client.on('error', () => {})
      if (connect) await once(client, 'ready')
      return client
    },
    close: (client) => (client as IoRedis).disconnect(),
  }
}

interface NodeRedis extends TestClient, NodeJS.EventEmitter {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  /** Version 4. */
  disconnect(): Promise<void>
  /** Version 5 and later. */
  destroy?(): void
}

function nodeRedis(name: ClientLibrary['name'], module: string): ClientLibrary {
  return {
    name,
    async open({ port, host = '127.0.0.1', username, password, database, tls, connect = true, also = {} }) {
      const { createClient } = require(module) as { createClient(options: object): NodeRedis }
      const socket = { port, host, ...(tls && { tls: true, ca: tls.ca }), ...(also.socket as object | undefined) }
      const client = createClient({ ...given({ username, password, database }), ...also, socket })
      client.on('error', () => {})
      if (connect) await client.connect()
      return client
    },
    close(client) {
      const theirs = client as NodeRedis
      if (!theirs.isOpen) return
      if (theirs.destroy) theirs.destroy()
      else theirs.disconnect().catch(() => {})
    },
  }
}

export const CLIENTS: readonly ClientLibrary[] = [
  ioredis('ioredis 5', 'ioredis-5'),
  ioredis('ioredis 6', 'ioredis'),
  nodeRedis('node-redis 4', 'redis-4'),
  nodeRedis('node-redis 5', 'redis-5'),
  nodeRedis('node-redis 6', 'redis'),
]
