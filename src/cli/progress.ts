import type { LeaseEvent } from '../events.js'
import type { Holding } from '../store.js'
import { suggest, type Target } from './connect.js'
import { formatDuration } from './duration.js'
import { say } from './output.js'
import { holdingLine } from './table.js'

/** Tells a person what `run` waits for and whether its lease is well: one line per change, none when nothing changes. */
export class Progress {
  readonly #target: Target
  readonly #key: string
  readonly #inspect: () => Promise<Holding | null>
  readonly #quiet: boolean
  readonly #waits: boolean
  #state = ''
  #atRisk = false

  constructor(
    target: Target,
    key: string,
    inspect: () => Promise<Holding | null>,
    options: { readonly quiet: boolean; readonly waits: boolean },
  ) {
    this.#target = target
    this.#key = key
    this.#inspect = inspect
    this.#quiet = options.quiet
    this.#waits = options.waits
  }

  /** Why the last renewal failed, as long as none has succeeded since. */
  trouble: string | null = null

  /** Called when the deadline has moved. */
  onRenewed: () => void = () => {}

  seen(event: LeaseEvent): void {
    if (event.type === 'attempt') this.#attempt(event)
    else if (event.type === 'at-risk') this.#risk(event.error, event.remainingMs)
    else if (event.type === 'renewed') this.#renewed()
  }

  #attempt(event: LeaseEvent & { readonly type: 'attempt' }): void {
    const state = event.outcome === 'held' ? `held ${event.holder}` : event.outcome
    if (this.#quiet || !this.#waits || state === this.#state) return
    this.#state = state
    if (event.outcome === 'held') void this.#sayHolder(event.holder)
    const place = this.#target.place
    if (event.outcome === 'not-ready') say(`${place} is not ready to grant ${this.#name}: ${event.why}; waiting`)
    if (event.outcome === 'unavailable' && event.attempt > 1)
      say(`${place} does not answer (${textOf(event.error)}); still trying`)
  }

  async #sayHolder(holder: string | undefined): Promise<void> {
    const holding = await this.#inspect().catch(() => null)
    // It may have been let go meanwhile: then the grant follows, or a line about the next holder.
    if (this.#state !== `held ${holder}`) return
    const who = holding ? holdingLine(holding) : `${this.#name} is held${holder === undefined ? '' : ` by ${holder}`}`
    say(
      `${who}; waiting (asked ${this.#target.place}); ask for it back: ${suggest(this.#target, 'revoke', this.#key)}${this.#ownHint()}`,
    )
  }

  /** The wait is over: nothing that is still being looked up is of interest. */
  over(): void {
    this.#state = ''
  }

  #ownHint(): string {
    if (process.env.HOLDFAST_KEY !== this.#key) return ''
    return '; this process runs under a holdfast that holds a key of that name: leases are not re-entrant'
  }

  #risk(error: unknown, remainingMs: number): void {
    this.trouble = textOf(error)
    if (this.#atRisk || this.#quiet) return
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
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
