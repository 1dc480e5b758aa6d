import { hostname } from 'node:os'
import { type Clock, systemEnvironment } from '../../environment.js'
import type { LeaseEvent } from '../../events.js'
import { textOf } from '../../messages.js'
import type { Holding } from '../../store.js'
import { suggest, type Target } from '../target/connect.js'
import { formatDuration } from '../text/duration.js'
import { holdingLine } from '../text/holding-line.js'
import { isLive } from '../text/live-terminal.js'
import { inOurWords } from '../text/our-words.js'
import { flushed, say } from '../text/output.js'
import { WaitLine } from './wait-line.js'
import { type AttemptEvent, type Obstacle, obstacleOf, Reminders, WaitState } from './wait-state.js'

/** A terminal that stalls does not hold up the command for longer. */
const CLEAR_MS = 500

export interface ProgressOptions {
  readonly quiet: boolean
  /** 0 when it only asks. */
  readonly waitMs: number
}

/** Where the question went, for people. A file is one of this host, which a mail about it may not say. */
export const askedText = ({ place, description }: Target): string =>
  `asked ${place}${description.kind === 'sqlite' ? ` on ${hostname()}` : ''}`

/**
 * Tells a person what `run` waits for and whether its lease is well: one line per change, none when nothing changes,
 * and on a terminal one more that is updated in place.
 */
export class Progress {
  readonly #target: Target
  readonly #key: string
  readonly #inspect: () => Promise<Holding | null>
  readonly #options: ProgressOptions
  readonly #clock: Clock = systemEnvironment().clock
  readonly #began = this.#clock.now()
  readonly #state = new WaitState()
  readonly #reminders = new Reminders(this.#began)
  readonly #line: WaitLine | null
  #obstacle: Obstacle | null = null
  #isWaiting = false
  #atRisk = false

  constructor(target: Target, key: string, inspect: () => Promise<Holding | null>, options: ProgressOptions) {
    this.#target = target
    this.#key = key
    this.#inspect = inspect
    this.#options = options
    const live = !options.quiet && options.waitMs > 0 && isLive(process.env)
    this.#line = live ? new WaitLine(key, inspect, options.waitMs, this.#clock) : null
  }

  /** Why the last renewal failed, as long as none has succeeded since. */
  trouble: string | null = null

  /** Called when the deadline has moved. */
  onRenewed: () => void = () => {}

  seen(event: LeaseEvent): void {
    if (event.type === 'attempt') this.#attempt(event)
    else if (event.type === 'acquired') this.#acquired(event.waitedMs)
    else if (event.type === 'at-risk') this.#risk(event.error, event.remainingMs)
    else if (event.type === 'renewed') this.#renewed()
  }

  /** The wait is over: nothing that is still being looked up is of interest, and the terminal is the command's. */
  async over(): Promise<void> {
    this.#obstacle = null
    if (!this.#line) return
    this.#line.close()
    await flushed(CLEAR_MS)
  }

  /** A signal ended the wait. */
  interrupted(signal: string): void {
    if (this.#options.quiet) return
    const waited = formatDuration(this.#clock.now() - this.#began)
    say(`${signal} ended the wait for ${this.#name} after ${waited}; the command was not started`)
  }

  #attempt(event: AttemptEvent): void {
    if (this.#options.quiet || this.#options.waitMs === 0) return
    const now = this.#clock.now()
    this.#obstacle = obstacleOf(event)
    if (this.#obstacle) this.#line?.update(this.#obstacle)
    const change = this.#state.changed(event, now)
    if (change) this.#tell(change.is, change.was)
    else if (this.#obstacle && !this.#line && this.#reminders.due(now)) this.#remind(this.#obstacle, now)
  }

  #tell(is: Obstacle, was: Obstacle | null): void {
    const { place } = this.#target
    if (was?.kind === 'unavailable') say(`${place} answers again`)
    if (is.kind === 'unavailable')
      return say(`${place} does not answer (${inOurWords(is.error)}); still trying to get ${this.#name}`)
    if (is.kind === 'not-ready') {
      this.#isWaiting = true
      return say(
        `${place} is not ready to grant ${this.#name}${forAnother(is.retryAfterMs)}: ${inOurWords(is.why)}; waiting${this.#upTo}`,
      )
    }
    // On a terminal the line that is updated in place shows who comes next.
    if (this.#isWaiting && this.#line && was?.kind === 'held') return
    void this.#sayHolder(is, this.#isWaiting ? 'still waiting' : 'waiting')
    this.#isWaiting = true
  }

  #remind(obstacle: Obstacle, now: number): void {
    const still = `still waiting after ${formatDuration(now - this.#began)}`
    if (obstacle.kind === 'held') void this.#sayHolder(obstacle, still)
    else say(`${this.#target.place} ${obstacle.kind === 'not-ready' ? 'is not ready' : 'does not answer'}; ${still}`)
  }

  async #sayHolder(held: Obstacle & { readonly kind: 'held' }, waiting: string): Promise<void> {
    const { holder } = held
    const holding = await this.#inspect().catch(() => null)
    // It may have been let go meanwhile: then the grant follows, or a line about the next holder.
    if (this.#obstacle?.kind !== 'held' || this.#obstacle.holder !== holder) return
    const who = holding ? holdingLine(holding) : `${this.#name} is held${holder === undefined ? '' : ` by ${holder}`}`
    const ask = holding?.state === 'revoked' ? '' : `; ask for it back: ${suggest(this.#target, 'revoke', this.#key)}`
    say(`${who}; ${waiting}${this.#upTo} (${askedText(this.#target)})${ask}${this.#ownHint()}`)
  }

  #ownHint(): string {
    if (process.env.HOLDFAST_KEY !== this.#key) return ''
    return '; this process runs under a holdfast that holds a key of that name: leases are not re-entrant'
  }

  #acquired(waitedMs: number): void {
    if (this.#isWaiting) say(`got ${this.#name} after ${formatDuration(waitedMs)}`)
  }

  #risk(error: unknown, remainingMs: number): void {
    this.trouble = inOurWords(textOf(error))
    if (this.#atRisk || this.#options.quiet) return
    this.#atRisk = true
    say(`could not renew the lease on ${this.#name} (${this.trouble}); trying again for ${formatDuration(remainingMs)}`)
  }

  #renewed(): void {
    this.trouble = null
    this.onRenewed()
    if (!this.#atRisk) return
    this.#atRisk = false
    say(`renewed the lease on ${this.#name}: all is well again`)
  }

  get #name(): string {
    return JSON.stringify(this.#key)
  }

  get #upTo(): string {
    const { waitMs } = this.#options
    return waitMs === Number.POSITIVE_INFINITY ? '' : ` up to ${formatDuration(waitMs)}`
  }
}

/** Less is over before anybody has read it. */
const WORTH_TELLING_MS = 1_000

const forAnother = (ms: number): string => (ms < WORTH_TELLING_MS ? '' : ` for another ${formatDuration(ms)}`)
