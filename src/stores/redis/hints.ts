import type { Timer } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { CallOptions, Watch } from '../../store.js'
import type { RedisClient } from './client.js'
import { Connection } from './connection.js'
import { cancelled, unlessAborted } from './connections.js'
import type { Settings } from './options.js'

const OPEN_WITHIN_MS = 2_000
const PATIENCE_MS = 2_000
const REOPEN_MS = { base: 50, cap: 2_000 }
/** Channels that stay subscribed after their last listener has left: who waits again soon finds them open. */
const MAX_IDLE = 64

type Listener = () => void

/** One watch. An object of its own, so that two with one callback are two. */
class Listening implements Watch {
  readonly hint: Listener
  readonly #group: Set<Listening>
  readonly #onLast: () => void

  constructor(hint: Listener, group: Set<Listening>, onLast: () => void) {
    this.hint = hint
    this.#group = group
    this.#onLast = onLast
    group.add(this)
  }

  close(): void {
    if (this.#group.delete(this) && this.#group.size === 0) this.#onLast()
  }
}

/**
 * Notifications, on one connection of their own for the whole process. They are speed, never correctness: whatever goes wrong
 * here makes waiting slower. Who listened while the connection was down may have missed one, and is hinted.
 */
export class Hints {
  readonly #client: RedisClient
  readonly #settings: Settings
  readonly #revokedChannel: string
  readonly #channels = new Map<string, Set<Listening>>()
  /** Holders, by the key of their lease: all of them on the one channel of revocations. */
  readonly #holders = new Map<string, Set<Listening>>()
  readonly #armed = new Map<string, Promise<unknown>>()
  /** Those of them that are subscribed by now. */
  readonly #standing = new Set<string>()
  /** Armed, with no listener. In the order in which they fell idle. */
  readonly #idle = new Set<string>()
  /** On their way out: a library may take the subscription that follows for one that still stands. */
  readonly #leaving = new Map<string, Promise<unknown>>()
  #connection: Connection | null = null
  #opening: Promise<Connection> | null = null
  #reopen: Timer | undefined
  #failures = 0
  #closed = false

  constructor(client: RedisClient, settings: Settings, revokedChannel: string) {
    this.#client = client
    this.#settings = settings
    this.#revokedChannel = revokedChannel
  }

  /** Resolves once armed. A holder hears of revocations, anyone else of the key becoming free. */
  listen(lease: string, isHolder: boolean, onHint: Listener, call: CallOptions): Promise<Watch> {
    if (this.#closed) return Promise.reject(new StoreError(`${this.#client.place}: the store is closed`, 'none'))
    const signal = call.cancellation ?? call.signal
    if (signal.aborted) return Promise.reject(cancelled(signal))
    const groups = isHolder ? this.#holders : this.#channels
    const channel = isHolder ? this.#revokedChannel : lease
    const listeners = groups.get(lease) ?? new Set<Listening>()
    groups.set(lease, listeners)
    const watch = new Listening(onHint, listeners, () => {
      groups.delete(lease)
      if (!isHolder) this.#leaveOpen(channel)
    })
    this.#idle.delete(channel)
    if (this.#standing.has(channel)) return Promise.resolve(watch)
    return unlessAborted(this.#arm(channel), signal).then(
      () => watch,
      (error) => {
        watch.close()
        throw error
      },
    )
  }

  close(): void {
    this.#closed = true
    this.#reopen?.cancel()
    this.#channels.clear()
    this.#holders.clear()
    this.#connection?.end(new Error('the store was closed'))
  }

  #arm(channel: string): Promise<unknown> {
    const armed = this.#armed.get(channel)
    if (armed) return armed
    const arming = this.#use().then((connection) => this.#subscribe(connection, channel))
    this.#armed.set(channel, arming)
    arming.then(
      () => this.#armed.get(channel) === arming && this.#standing.add(channel),
      () => this.#armed.get(channel) === arming && this.#armed.delete(channel),
    )
    return arming
  }

  async #subscribe(connection: Connection, channel: string): Promise<unknown> {
    await this.#leaving.get(channel)
    // Nothing else may ever be asked here that would notice the silence.
    const timer = this.#settings.environment.clock.timer(PATIENCE_MS, () =>
      connection.end(new Error(`no answer within ${PATIENCE_MS} ms`)),
    )
    return connection.subscribe(channel, PATIENCE_MS).finally(() => timer.cancel())
  }

  #use(): Promise<Connection> {
    if (this.#connection?.usable) return Promise.resolve(this.#connection)
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  async #open(): Promise<Connection> {
    this.#connection?.end(new Error('it did not answer'))
    const ended = () => this.#connection === connection && this.#lost()
    const connection: Connection = new Connection(
      this.#client,
      this.#settings.environment.clock,
      ended,
      (channel, text) => this.#heard(channel, text),
    )
    this.#connection = connection
    await connection.ready(OPEN_WITHIN_MS)
    this.#failures = 0
    return connection
  }

  #heard(channel: string, text: string): void {
    if (channel === this.#revokedChannel) {
      for (const { hint } of this.#holders.get(text) ?? []) hint()
      // The place of a waiter does not change, but what it waits for may end sooner now.
      for (const { hint } of this.#channels.get(text) ?? []) hint()
    } else for (const { hint } of this.#channels.get(channel) ?? []) hint()
  }

  /** What was subscribed is not any more: again, for those who still listen. */
  #lost(): void {
    this.#connection = null
    this.#armed.clear()
    this.#standing.clear()
    this.#idle.clear()
    if (this.#closed || (this.#channels.size === 0 && this.#holders.size === 0)) return
    const { clock, random } = this.#settings.environment
    const ms = Math.min(REOPEN_MS.base * 2 ** Math.min(this.#failures++, 10), REOPEN_MS.cap) * (0.5 + random.next() / 2)
    this.#reopen?.cancel()
    this.#reopen = clock.timer(ms, () => void this.#resume())
  }

  async #resume(): Promise<void> {
    const channels = [...this.#channels.keys(), ...(this.#holders.size > 0 ? [this.#revokedChannel] : [])]
    try {
      await Promise.all(channels.map((channel) => this.#arm(channel)))
    } catch {
      // It ended again, and is tried again.
      return
    }
    for (const listeners of [...this.#channels.values(), ...this.#holders.values()])
      for (const { hint } of [...listeners]) hint()
  }

  #leaveOpen(channel: string): void {
    if (!this.#armed.has(channel)) return
    this.#idle.add(channel)
    if (this.#idle.size <= MAX_IDLE) return
    const [oldest = ''] = this.#idle
    this.#idle.delete(oldest)
    const armed = this.#armed.get(oldest)
    this.#armed.delete(oldest)
    this.#standing.delete(oldest)
    const leaving = Promise.resolve(armed)
      .then(() => this.#connection?.unsubscribe(oldest, PATIENCE_MS))
      .catch(() => {})
      .finally(() => this.#leaving.get(oldest) === leaving && this.#leaving.delete(oldest))
    this.#leaving.set(oldest, leaving)
  }
}
