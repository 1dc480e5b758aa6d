import type { Timer } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { CallOptions, Watch } from '../../store.js'
import type { RedisClient } from './client.js'
import { Connection } from './connection.js'
import { cancelled } from './connections.js'
import type { Settings } from './options.js'

const OPEN_WITHIN_MS = 2_000
const PATIENCE_MS = 2_000
const REOPEN_MS = { base: 50, cap: 2_000 }
/** Channels that stay subscribed after their last listener has left: who waits again soon finds them open. */
const MAX_IDLE = 64

type Listener = () => void

/**
 * Notifications, on one connection of their own for the whole process. They are speed, never correctness: whatever goes wrong
 * here makes waiting slower. Who listened while the connection was down may have missed one, and is hinted.
 */
export class Hints {
  readonly #client: RedisClient
  readonly #settings: Settings
  readonly #revokedChannel: string
  /** By channel, empty where a channel is only left open. In the order in which they fell idle. */
  readonly #channels = new Map<string, Set<Listener>>()
  /** Holders, by the key of their lease: all of them on the one channel of revocations. */
  readonly #holders = new Map<string, Set<Listener>>()
  readonly #armed = new Map<string, Promise<unknown>>()
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
  async listen(lease: string, isHolder: boolean, onHint: Listener, call: CallOptions): Promise<Watch> {
    if (this.#closed) throw new StoreError(`${this.#client.place}: the store is closed`, 'none')
    const signal = call.cancellation ?? call.signal
    if (signal.aborted) throw cancelled(signal)
    const [groups, group, channel] = isHolder
      ? ([this.#holders, lease, this.#revokedChannel] as const)
      : ([this.#channels, lease, lease] as const)
    const listeners = groups.get(group) ?? new Set()
    // Of its own, so that two watches with one callback are two.
    const listener = () => onHint()
    groups.set(group, listeners.add(listener))
    const close = () => {
      if (!listeners.delete(listener) || listeners.size > 0) return
      groups.delete(group)
      if (!isHolder) this.#idle(channel, listeners)
    }
    try {
      await this.#arm(channel)
    } catch (error) {
      close()
      throw error
    }
    return { close }
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
    const arming = this.#use().then((connection) => connection.subscribe(channel, PATIENCE_MS))
    this.#armed.set(channel, arming)
    arming.catch(() => this.#armed.get(channel) === arming && this.#armed.delete(channel))
    return arming
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
      for (const listener of this.#holders.get(text) ?? []) listener()
      // The place of a waiter does not change, but what it waits for may end sooner now.
      for (const listener of this.#channels.get(text) ?? []) listener()
    } else for (const listener of this.#channels.get(channel) ?? []) listener()
  }

  /** What was subscribed is not any more: again, for those who still listen. */
  #lost(): void {
    this.#connection = null
    this.#armed.clear()
    for (const [channel, listeners] of this.#channels) if (listeners.size === 0) this.#channels.delete(channel)
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
      for (const listener of [...listeners]) listener()
  }

  #idle(channel: string, listeners: Set<Listener>): void {
    // Last in order: those that fell idle first go first.
    this.#channels.set(channel, listeners)
    if (this.#channels.size <= MAX_IDLE) return
    for (const [idle, { size }] of this.#channels) {
      if (size > 0) continue
      this.#channels.delete(idle)
      this.#armed.delete(idle)
      this.#connection?.unsubscribe(idle, PATIENCE_MS).catch(() => {})
      return
    }
  }
}
