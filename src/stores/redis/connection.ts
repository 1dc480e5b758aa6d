import type { Clock } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { Asker, RedisClient, Wire } from './client.js'
import { endText, isDemoted, isLoggedOut, storeError, withoutSecrets } from './replies.js'
import { Sent } from './sent.js'
import type { ServerLife } from './server-life.js'

/** Who gives up sooner says nothing about the connection: a caller may cancel at any time. */
const HASTE_MS = 50
/** How long a replaced connection is kept for answers that may still count. */
const LATE_MS = 30_000

/** A server whose settings forbid it to grant is looked at anew this long after it was last. */
const LOOK_AGAIN_MS = 1_000

/** Nothing was done here: it may be asked again, on a new connection. */
export class OtherLifeError extends StoreError {}

/** No script has told its mark yet. */
export const UNKNOWN_MARK = '-'

/**
 * One connection to one server life. It is never mended: what was asked of it and not answered when it ends is of unknown
 * fate, at once, whatever the client library makes of it (B099).
 */
export class Connection {
  readonly place: string
  readonly #clock: Clock
  readonly #wire: Wire
  readonly #ready: Promise<unknown>
  readonly #onEnd: () => void
  /** In the order of sending, which is the order of replies. */
  readonly #pending = new Set<Sent>()
  readonly #madeAt: number
  #ended: StoreError | null = null
  #tellOpener: (error: StoreError) => void = () => {}
  #retired = false
  #heard = false
  #life: ServerLife | undefined
  /** By which scripts know that they run in the server life that was looked at; learnt from their first answer. */
  mark = UNKNOWN_MARK
  /** Server time in µs minus our clock in ms x 1000. Learnt anew when a step of the server's clock shows. */
  aheadUs = 0

  /** `onEnd` is called once. */
  constructor(
    client: RedisClient,
    clock: Clock,
    onEnd: () => void,
    onMessage: (channel: string, text: string) => void = () => {},
  ) {
    this.place = client.place
    this.#clock = clock
    this.#madeAt = clock.now()
    this.#onEnd = onEnd
    const { wire, ready } = client.connect({
      ended: (error) => this.end(error),
      message: onMessage,
    })
    this.#wire = wire
    this.#ready = ready
    ready.catch((error) => this.end(error))
  }

  /** Resolves when it may be used. @throws StoreError `none`: nothing was asked yet. */
  async ready(withinMs: number): Promise<void> {
    const timer = this.#clock.timer(withinMs, () =>
      this.end(new Error(`not connected and logged in within ${withinMs} ms`)),
    )
    try {
      await new Promise<unknown>((resolve, reject) => {
        this.#tellOpener = reject
        if (this.#ended) reject(this.#ended)
        this.#ready.then(resolve, () => {})
      })
    } finally {
      timer.cancel()
    }
    if (this.#ended) throw this.#ended
    // A lease that is merely held does not keep a process running; a question that was asked does.
    this.#wire.hold(false)
  }

  set life(life: ServerLife) {
    this.#life = life
    this.#wire.shorten?.()
    this.aheadUs = life.aheadUs
  }

  get life(): ServerLife {
    if (!this.#life) throw new Error('the server was not looked at yet')
    return this.#life
  }

  /** May be used for what is asked now. */
  get usable(): boolean {
    return this.#ended === null && !this.#retired && !this.#isStalled()
  }

  /**
   * `patienceMs`: without an answer for longer than this, others are better asked on a new connection.
   * The error is a StoreError: `none` when it had ended before.
   */
  send(args: readonly string[], patienceMs: number, asker: Asker): void {
    const sent = this.#begin(patienceMs, asker)
    if (!sent) return
    try {
      this.#wire.send(args, sent)
    } catch (error) {
      sent.failed(error)
    }
  }

  request(args: readonly string[], patienceMs: number): Promise<unknown> {
    return new Promise((answered, failed) => this.send(args, patienceMs, { answered, failed }))
  }

  subscribe(channel: string, patienceMs: number): Promise<unknown> {
    return this.#listen(() => this.#wire.subscribe(channel), patienceMs)
  }

  unsubscribe(channel: string, patienceMs: number): Promise<unknown> {
    return this.#listen(() => this.#wire.unsubscribe(channel), patienceMs)
  }

  /** Nothing is under way. */
  get idle(): boolean {
    return this.#pending.size === 0
  }

  /** Nothing more is asked of it; it goes once all it was asked is answered, so that late grants still count. */
  retire(): void {
    this.#retired = true
    if (this.#pending.size === 0) this.end(new Error('it was replaced'))
    else this.#clock.timer(LATE_MS, () => this.end(new Error('it was replaced, and never answered')))
  }

  /** Where the server was looked at a while ago: somebody may have mended its settings. Retires it then. */
  outdated(): OtherLifeError | null {
    if (this.#clock.now() - this.#madeAt < LOOK_AGAIN_MS) return null
    this.retire()
    return this.#elsewhere('the server is looked at anew')
  }

  /** The server at its other end is not the one that was looked at. Ends it. */
  replaced(cause?: unknown): OtherLifeError {
    const error = this.#elsewhere('the server was restarted behind this connection (by a proxy?)', cause)
    this.end(error)
    return error
  }

  #elsewhere(why: string, cause?: unknown): OtherLifeError {
    return new OtherLifeError(`${this.place}: ${why}`, 'none', { cause })
  }

  /** A caller waits no longer for its answer: whoever asks next should not be behind it, nor the process kept for it. */
  givenUp(): void {
    const now = this.#clock.now()
    for (const oldest of this.#pending) {
      if (now - oldest.sentAt < HASTE_MS) return
      oldest.stallsAt = Math.min(oldest.stallsAt, now)
      return this.#wire.hold(false)
    }
  }

  later(ms: number, callback: () => void): void {
    this.#clock.timer(ms, callback)
  }

  end(error: unknown): void {
    if (this.#ended) return
    const why = endText(error, this.#heard)
    const cause = { cause: withoutSecrets(error) }
    this.#ended = new StoreError(`${this.place}: ${why}`, 'none', cause)
    const lost = new StoreError(`${this.place}: the connection ended before the answer: ${why}`, 'unknown', cause)
    for (const { asker } of this.#pending) asker.failed(lost)
    this.#pending.clear()
    this.#wire.destroy()
    this.#tellOpener(this.#ended)
    this.#onEnd()
  }

  #begin(patienceMs: number, asker: Asker): Sent | null {
    if (this.#ended) {
      asker.failed(this.#retired ? this.#elsewhere('the connection was replaced') : this.#ended)
      return null
    }
    const sent = new Sent(this, asker, this.#clock.now(), patienceMs)
    if (this.#pending.size === 0) this.#wire.hold(true)
    this.#pending.add(sent)
    return sent
  }

  #listen(ask: () => Promise<unknown>, patienceMs: number): Promise<unknown> {
    return new Promise((answered, failed) => {
      const sent = this.#begin(patienceMs, { answered, failed })
      if (sent)
        ask().then(
          (reply) => sent.answered(reply),
          (error) => sent.failed(error),
        )
    })
  }

  /** What a question of this connection has come to; its own business. */
  answered(sent: Sent, reply: unknown): void {
    this.#heard = true
    if (this.#settle(sent)) sent.asker.answered(reply)
  }

  failed(sent: Sent, error: unknown): void {
    if (!this.#settle(sent)) return
    if (this.#life && isDemoted(error)) this.retire()
    // It was logged in once.
    sent.asker.failed(this.#life && isLoggedOut(error) ? this.replaced(error) : storeError(error, this.place))
  }

  /** Whether it is settled now, and not before. */
  #settle(sent: Sent): boolean {
    if (!this.#pending.delete(sent)) return false
    if (this.#pending.size === 0) {
      if (this.#retired) this.end(new Error('it was replaced'))
      else this.#wire.hold(false)
    }
    return true
  }

  #isStalled(): boolean {
    for (const { stallsAt } of this.#pending) return this.#clock.now() >= stallsAt
    return false
  }
}
