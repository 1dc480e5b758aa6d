import type { Clock, Timer } from '../../environment.js'
import type { Holding } from '../../store.js'
import { controllingTerminal } from '../process/terminal.js'
import { formatDuration } from '../text/duration.js'
import { fitted, terminalWidth } from '../text/live-terminal.js'
import { inOurWords } from '../text/our-words.js'
import { printable, showStatus } from '../text/output.js'
import type { Obstacle } from './wait-state.js'

const REFRESH_MS = 1_000
/** Two holders may have one label: the store is asked again, so that the time shown is that of the present one. */
const LOOK_MS = 5_000

/** The one line that a terminal shows while `run` waits: how long, for whom, and how long that one has had the key. */
export class WaitLine {
  readonly #key: string
  readonly #inspect: () => Promise<Holding | null>
  readonly #waitMs: number
  readonly #clock: Clock
  readonly #began: number
  #obstacle: Obstacle | null = null
  /** When the present holder got the key, on our clock. */
  #heldSince: number | null = null
  /** When the store said that it will be ready, on our clock. */
  #readyAt = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  readonly #terminal = controllingTerminal()
  #timer: Timer | undefined
  #isOver = false

  constructor(key: string, inspect: () => Promise<Holding | null>, waitMs: number, clock: Clock) {
    this.#key = key
    this.#inspect = inspect
    this.#waitMs = waitMs
    this.#clock = clock
    this.#began = clock.now()
  }

  update(obstacle: Obstacle): void {
    const before = this.#obstacle
    if (obstacle.kind !== 'held' || before?.kind !== 'held' || before.holder !== obstacle.holder) {
      this.#heldSince = null
      this.#lookedAt = Number.NEGATIVE_INFINITY
    }
    this.#obstacle = obstacle
    if (obstacle.kind === 'not-ready') this.#readyAt = this.#clock.now() + obstacle.retryAfterMs
    this.#timer ??= this.#clock.timer(REFRESH_MS, () => this.#refresh())
  }

  close(): void {
    this.#isOver = true
    this.#timer?.cancel()
    showStatus(null)
  }

  #refresh(): void {
    if (this.#isOver || !this.#obstacle) return
    void this.#look(this.#obstacle)
    this.#timer = this.#clock.timer(REFRESH_MS, () => this.#refresh())
    // A job in the background must not write into what is typed to another.
    if (this.#terminal?.isForeground() === false) return
    showStatus(fitted(printable(this.#text(this.#obstacle)), terminalWidth()))
  }

  async #look(obstacle: Obstacle): Promise<void> {
    const now = this.#clock.now()
    if (obstacle.kind !== 'held' || now - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = now
    const holding = await this.#inspect().catch(() => null)
    if (this.#obstacle !== null && holding?.label === obstacle.holder && holding?.heldForMs !== undefined)
      this.#heldSince = this.#clock.now() - holding.heldForMs
  }

  #text(obstacle: Obstacle): string {
    const now = this.#clock.now()
    const limit = this.#waitMs === Number.POSITIVE_INFINITY ? '' : ` of ${formatDuration(this.#waitMs)}`
    const waiting = `holdfast: waiting ${seconds(now - this.#began)}${limit} for ${JSON.stringify(this.#key)}`
    if (obstacle.kind === 'unavailable') return `${waiting}: the store does not answer`
    if (obstacle.kind === 'not-ready') {
      const left = this.#readyAt - now
      // The reason stands above, and tells of the moment when it was given.
      return `${waiting}: ${left < 1_000 ? inOurWords(obstacle.why) : `the store is not ready, ${seconds(left)} to go`}`
    }
    const by = obstacle.holder === undefined ? '' : ` by ${obstacle.holder}`
    const span = this.#heldSince === null ? '' : ` for ${seconds(now - this.#heldSince)}`
    return `${waiting}: held${span}${by}`
  }
}

/** Nothing below a second: it would only flicker. */
const seconds = (ms: number): string => (ms < 1_000 ? '0s' : formatDuration(Math.floor(ms / 1_000) * 1_000))
