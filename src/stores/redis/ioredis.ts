import type { RedisClient, Wire } from './client.js'
import { Resp, type Stream } from './resp.js'

/** The members of an ioredis client that are used (5 and 6, and iovalkey). */
interface Ioredis {
  readonly options: {
    readonly host?: string
    readonly port?: number
    readonly path?: string | null
    readonly db?: number
    readonly sentinels?: unknown
  }
  readonly status: string
  readonly stream?: Stream & {
    ref?(): void
    unref?(): void
    destroy?(): void
    removeAllListeners?(event: string): unknown
  }
  /** What was sent and not answered; not in its types. */
  readonly commandQueue?: { readonly length: number }
  duplicate(overrides: object): Ioredis
  connect(): Promise<unknown>
  call(command: string, ...args: string[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  disconnect(): void
  on(event: string, listener: (...args: never[]) => void): unknown
}

/**
 * Set against the library's own habits: it would resend what may have run already, queue while offline and send that a
 * minute later, and put a prefix before our keys (which would keep two applications from meeting).
 */
const OURS = {
  lazyConnect: true,
  keyPrefix: '',
  retryStrategy: () => null,
  reconnectOnError: null,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  enableReadyCheck: false,
  enableAutoPipelining: false,
  stringNumbers: false,
  replyMapping: 'legacy',
  readOnly: false,
  monitor: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  scripts: undefined,
}

export const isIoredis = (given: object): given is Ioredis =>
  'call' in given &&
  typeof given.call === 'function' &&
  'status' in given &&
  typeof given.status === 'string' &&
  'options' in given

export function ioredis(given: Ioredis): RedisClient {
  const { path, host = 'localhost', port = 6379, db = 0 } = given.options
  return {
    place: `redis at ${path || `${host.includes(':') ? `[${host}]` : host}:${port}`}${db ? `, database ${db}` : ''}`,
    connect(events) {
      const redis = given.duplicate(OURS)
      // What went wrong is told by an event; the promise only says that it is over.
      let failure: unknown
      redis.on('error', (error: unknown) => {
        failure ??= error
        events.ended(error)
      })
      redis.on('end', () => events.ended(failure ?? new Error('the connection was closed')))
      redis.on('message', (channel: string, text: string) => events.message(channel, text))
      let short: Resp | undefined
      const wire: Wire = {
        send(args, asker) {
          if (short) return short.send(args, asker)
          redis.call(...(args as [string])).then(
            (reply) => asker.answered(reply),
            (error) => asker.failed(error),
          )
        },
        shorten() {
          const { stream, commandQueue } = redis
          if (short || !stream?.removeAllListeners || commandQueue?.length !== 0) return
          // As the library itself does where it only listens (MONITOR).
          stream.removeAllListeners('data')
          short = new Resp(stream, events.ended)
        },
        subscribe: (channel) => redis.subscribe(channel),
        unsubscribe: (channel) => redis.unsubscribe(channel),
        hold: (keepsRunning) => (keepsRunning ? redis.stream?.ref?.() : redis.stream?.unref?.()),
        destroy() {
          const { stream } = redis
          redis.disconnect()
          // Its own way ends politely, which a server that hangs never answers.
          stream?.destroy?.()
        },
      }
      const ready = redis.connect().catch((error: unknown) => {
        throw failure ?? error
      })
      return { wire, ready }
    },
  }
}
