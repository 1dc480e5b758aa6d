import type { RedisClient, Wire } from './client.js'

/** The members of a node-redis client that are used (4, 5 and 6). */
interface NodeRedis {
  readonly options?: {
    readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string }
    readonly database?: number
  }
  readonly isOpen: boolean
  readonly isReady: boolean
  duplicate(overrides: object): NodeRedis
  connect(): Promise<unknown>
  sendCommand(args: readonly string[]): Promise<unknown>
  subscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  /** 5 and newer; `disconnect` before. */
  destroy?(): void
  disconnect?(): Promise<unknown>
  ref(): void
  unref(): void
  on(event: string, listener: (...args: never[]) => void): unknown
}

/** Set against habits that would change replies, keep commands for later, or move a connection to another server. */
const OURS = {
  disableOfflineQueue: true,
  legacyMode: false,
  readonly: false,
  commandOptions: {},
  commandsQueueMaxLength: undefined,
  pingInterval: undefined,
  clientSideCache: undefined,
  emitInvalidate: undefined,
  maintNotifications: 'disabled',
  keyPrefix: undefined,
}

export const isNodeRedis = (given: object): given is NodeRedis =>
  'sendCommand' in given &&
  typeof given.sendCommand === 'function' &&
  'isReady' in given &&
  typeof given.isReady === 'boolean' &&
  'isOpen' in given &&
  'connect' in given &&
  'options' in given

export function nodeRedis(given: NodeRedis): RedisClient {
  const { socket = {}, database = 0 } = given.options ?? {}
  const { path, host = 'localhost', port = 6379 } = socket
  return {
    place: `redis at ${path ?? `${host.includes(':') ? `[${host}]` : host}:${port}`}${database ? `, database ${database}` : ''}`,
    connect(events) {
      const redis = given.duplicate({
        ...OURS,
        socket: { ...socket, reconnectStrategy: false, connectTimeout: 5_000, socketTimeout: undefined },
      })
      // Without this listener an error would end the process (B103).
      redis.on('error', (error: unknown) => events.ended(error))
      redis.on('end', () => events.ended(new Error('the connection was closed')))
      let hasSocket = false
      redis.on('connect', () => {
        hasSocket = true
      })
      const kill = () => {
        try {
          if (redis.destroy) redis.destroy()
          else redis.disconnect?.().catch(() => {})
        } catch {
          // It is closed already, which is what was asked for.
        }
      }
      const wire: Wire = {
        send: (args, asker) =>
          void redis.sendCommand(args).then(
            (reply) => asker.answered(reply),
            (error) => asker.failed(error),
          ),
        subscribe: (channel) => redis.subscribe(channel, (text, from) => events.message(from, text)),
        unsubscribe: (channel) => redis.unsubscribe(channel),
        hold: (keepsRunning) => (keepsRunning ? redis.ref() : redis.unref()),
        destroy() {
          if (hasSocket) return kill()
          // It forgets a socket that is still connecting, which would stay open then and keep the process running. And it
          // leaves rejections to nobody where it is ended before it has begun to log in.
          redis.unref()
          redis.on('connect', () => queueMicrotask(kill))
        },
      }
      return { wire, ready: redis.connect() }
    },
  }
}
