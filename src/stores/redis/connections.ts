import { StoreError } from '../../errors.js'
import type { Cancellation } from '../../store.js'
import type { RedisClient } from './client.js'
import { Connection } from './connection.js'
import type { Counter } from './keys.js'
import type { Settings } from './options.js'
import { withoutSecrets } from './replies.js'
import { inspectServer, type ServerLife, Sightings } from './server-life.js'

/** For the whole of connecting, logging in and looking at the server. */
const OPEN_WITHIN_MS = 2_000
/** By then another try is made beside it: what was lost on the way of this one is repeated late, or never. */
const OPEN_PATIENCE_MS = 400
/** After a failure, calls share its error for this long instead of trying again each by itself. */
const FAILED_FOR_MS = 25
/** Replaced connections that are kept for late answers. */
const MAX_RETIRED = 4

interface Failure {
  readonly error: unknown
  readonly until: number
}

/** The connection for what is asked now: opened when first needed, replaced when it ended or hangs. */
export class Connections {
  readonly #client: RedisClient
  readonly #settings: Settings
  readonly #counter: Counter
  readonly #sightings = new Sightings()
  #current: Connection | null = null
  /** The latest try. */
  #opening: { readonly connection: Promise<Connection>; readonly since: number } | null = null
  #failed: Failure | null = null
  /** All that have not ended. */
  readonly #open = new Set<Connection>()
  #closed = false

  constructor(client: RedisClient, settings: Settings, counter: Counter) {
    this.#client = client
    this.#settings = settings
    this.#counter = counter
  }

  /** The present one, where nothing needs to be waited for. */
  get usable(): Connection | null {
    return !this.#closed && this.#current?.usable ? this.#current : null
  }

  /** @throws StoreError `none` when there is none, the store is closed, or `signal` aborts first. */
  async use(signal: Cancellation): Promise<Connection> {
    this.#refuseWhenUseless(signal)
    const usable = this.usable
    if (usable) return usable
    const now = this.#settings.environment.clock.now()
    if (this.#failed && now < this.#failed.until) throw this.#failed.error
    const isFresh = this.#opening && now < this.#opening.since + OPEN_PATIENCE_MS
    const { connection } = this.#opening && isFresh ? this.#opening : this.#openAnother(now)
    return unlessAborted(connection, signal)
  }

  #openAnother(now: number): { readonly connection: Promise<Connection> } {
    const opening = { connection: eitherOf(this.#opening?.connection, this.#connect()), since: now }
    this.#opening = opening
    const over = (failed: Failure | null) => {
      if (this.#opening !== opening) return
      this.#opening = null
      this.#failed = failed
    }
    opening.connection.then(
      () => over(null),
      (error) => over({ error, until: this.#settings.environment.clock.now() + FAILED_FOR_MS }),
    )
    return opening
  }

  #refuseWhenUseless(signal: Cancellation): void {
    if (this.#closed) throw new StoreError(`${this.#client.place}: the store is closed`, 'none')
    if (signal.aborted) throw cancelled(signal)
  }

  close(): void {
    this.#closed = true
    for (const connection of this.#open) connection.end(new Error('the store was closed'))
  }

  /** Looks at the server as it is now. */
  async look(connection: Connection): Promise<ServerLife> {
    const ask = (...args: string[]) => connection.request(args, OPEN_WITHIN_MS)
    const life = await inspectServer(ask, this.#client.place, this.#counter, this.#settings, this.#sightings)
    connection.life = life
    return life
  }

  async #connect(): Promise<Connection> {
    const { clock } = this.#settings.environment
    const connection = new Connection(this.#client, clock, () => this.#open.delete(connection))
    this.#open.add(connection)
    const giveUpAt = clock.now() + OPEN_WITHIN_MS
    try {
      await connection.ready(OPEN_WITHIN_MS)
      const timer = clock.timer(giveUpAt - clock.now(), () =>
        connection.end(new Error(`no answer within ${OPEN_WITHIN_MS} ms of connecting`)),
      )
      await this.look(connection).finally(() => timer.cancel())
    } catch (error) {
      connection.end(error)
      // Nothing that matters was asked.
      throw new StoreError(error instanceof Error ? error.message : String(error), 'none', {
        cause: withoutSecrets(error),
      })
    }
    // A later try was faster.
    if (this.#current?.usable) {
      connection.retire()
      return this.#current
    }
    this.#current?.retire()
    this.#current = connection
    this.#limitRetired()
    return connection
  }

  #limitRetired(): void {
    for (const connection of this.#open) {
      if (this.#open.size <= MAX_RETIRED + 1) return
      if (connection !== this.#current) connection.end(new Error('it was replaced and did not answer'))
    }
  }
}

/** The later one decides, unless the earlier one is there first after all: who waits need not wait for the later one then. */
async function eitherOf(earlier: Promise<Connection> | undefined, later: Promise<Connection>): Promise<Connection> {
  if (!earlier) return later
  return new Promise((resolve, reject) => {
    earlier.then(resolve, () => {})
    later.then(resolve, reject)
  })
}

export const cancelled = (signal: Cancellation): StoreError =>
  new StoreError('cancelled before it was asked', 'none', { cause: signal.reason })

/** Rejects with `none` when `signal` aborts first; the work goes on. */
export function unlessAborted<T>(work: Promise<T>, signal: Cancellation): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(cancelled(signal))
    signal.addEventListener('abort', abort)
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
