import { hostname } from 'node:os'
import type { Clock } from '../../environment.js'
import { AcquireTimeoutError, StoreUnavailableError } from '../../errors.js'
import type { LeaseEvent } from '../../events.js'
import { textOf } from '../../messages.js'
import type { LossReason } from '../../store.js'
import { EXIT } from '../exit.js'
import type { Ended } from '../process/child.js'
import { isoTime } from '../text/wall-time.js'
import type { Journal } from './journal.js'
import { type Obstacle, WaitState } from './wait-state.js'

/** How a run ended. Part of what users rely on: see `docs/cli.md`. */
export type Outcome =
  | 'completed'
  | 'lost'
  | 'not-started'
  | 'interrupted'
  | 'held'
  | 'not-ready'
  | 'unavailable'
  | 'unsafe'
  | 'usage'
  | 'fault'

/** What is asked for; `null` where that could not be made out. */
export interface About {
  readonly namespace: string | null
  readonly key: string | null
  readonly store: string | null
}

/**
 * What happens to one run, as lines of `--json-log`: one for each change, and its outcome as the last, which tells the
 * exit codes of holdfast from those of the command. Without a journal it only listens.
 */
export class Report {
  readonly #journal: Journal | null
  readonly #clock: Clock
  readonly #began: number
  readonly #wait = new WaitState()
  readonly #onExit = (exitCode: number) => this.#journal?.writeNow(this.#conclusion('fault', exitCode))
  #about: About
  #waits = false
  #outcome: Outcome = 'completed'
  #message: string | null = null
  #reason: LossReason | null = null
  #fence: bigint | null = null
  #waitedMs: number | null = null
  #heldForMs: number | null = null
  #commandPid: number | null = null
  #commandExitCode: number | null = null
  #signal: string | null = null
  #isAtRisk = false

  constructor(journal: Journal | null, clock: Clock, key: string | null) {
    this.#journal = journal
    this.#about = { namespace: null, key, store: null }
    this.#clock = clock
    this.#began = clock.now()
    // A fault of ours ends the process elsewhere: even then the last line says so.
    if (journal) process.once('exit', this.#onExit)
  }

  /** From here on it is known what is asked for; `waits`: and that it may be asked for again. */
  asks(about: About, waits: boolean): void {
    this.#about = about
    this.#waits = waits
  }

  seen(event: LeaseEvent): void {
    if (!this.#journal) return
    if (event.type === 'attempt') {
      const change = this.#waits ? this.#wait.changed(event, this.#clock.now()) : null
      if (change) this.#write('waiting', waitFacts(change.is))
    } else if (event.type === 'acquired') {
      const { fence, waitedMs, attempts } = event
      this.#fence = fence
      this.#waitedMs = waitedMs
      this.#write('acquired', { waitedMs: Math.round(waitedMs), attempts })
    } else if (event.type === 'at-risk') {
      if (!this.#isAtRisk)
        this.#write('at-risk', { message: textOf(event.error), remainingMs: Math.round(event.remainingMs) })
      this.#isAtRisk = true
    } else if (event.type === 'renewed') {
      if (this.#isAtRisk) this.#write('renewed', {})
      this.#isAtRisk = false
    } else if (event.type === 'lost') {
      this.#heldForMs = event.heldForMs
      this.#lose(event.reason, { lateByMs: Math.round(event.lateByMs) })
    } else {
      this.#heldForMs ??= event.heldForMs
      this.#write('released', { outcome: event.outcome })
    }
  }

  get outcome(): Outcome {
    return this.#outcome
  }

  started(pid: number | null): void {
    this.#commandPid = pid
    this.#write('started', { commandPid: pid })
  }

  terminating(killInMs: number): void {
    this.#write('terminating', { killInMs: Math.round(killInMs) })
  }

  killing(): void {
    this.#write('killing', {})
  }

  /** The watchdog ends the command in our place: we were stopped, or too late. */
  overtaken(): void {
    this.#write('watchdog-acting', {})
  }

  ended(ended: Ended): void {
    if (ended.kind === 'not-started') {
      this.#outcome = 'not-started'
      this.#message = ended.why
      return
    }
    this.#commandExitCode = ended.code
    this.#signal = ended.signal
    this.#write('ended', { commandExitCode: ended.code, signal: ended.signal })
  }

  /** The command was not protected to its end; the lease may not know of it yet. */
  lost(reason: LossReason, message: string): void {
    this.#outcome = 'lost'
    this.#message = message
    this.#lose(reason, {})
  }

  interrupted(signal: string): void {
    this.#outcome = 'interrupted'
    this.#signal = signal
  }

  /** It ends with an error that has its own exit code. */
  failed(error: unknown, exitCode: number | null): void {
    this.#message = textOf(error)
    const cause = error instanceof Error ? (error.cause ?? error) : error
    if (cause instanceof AcquireTimeoutError) this.#outcome = 'held'
    else if (cause instanceof StoreUnavailableError && cause.why !== undefined) this.#outcome = 'not-ready'
    else this.#outcome = BY_EXIT_CODE[exitCode ?? EXIT.software] ?? 'fault'
  }

  /** The last line. */
  async conclude(exitCode: number): Promise<void> {
    if (!this.#journal) return
    process.off('exit', this.#onExit)
    this.#journal.write(this.#conclusion(this.#outcome, exitCode))
    await this.#journal.close()
  }

  #lose(reason: LossReason, facts: Readonly<Record<string, unknown>>): void {
    if (this.#reason !== null) return
    this.#reason = reason
    this.#write('lost', { reason, ...facts })
  }

  #write(event: string, facts: Readonly<Record<string, unknown>>): void {
    this.#journal?.write({ ...this.#line(event), ...facts })
  }

  #conclusion(outcome: Outcome, exitCode: number): Record<string, unknown> {
    const waitedMs = this.#waitedMs ?? (this.#about.store !== null ? this.#clock.now() - this.#began : null)
    return {
      ...this.#line('outcome'),
      outcome,
      exitCode,
      commandPid: this.#commandPid,
      commandExitCode: this.#commandExitCode,
      signal: this.#signal,
      reason: this.#reason,
      waitedMs: waitedMs === null ? null : Math.round(waitedMs),
      heldForMs: this.#heldForMs === null ? null : Math.round(this.#heldForMs),
      message: this.#message,
    }
  }

  /** What every line begins with. The fence as text: JSON readers lose digits of large numbers. */
  #line(event: string): Record<string, unknown> {
    const fence = this.#fence === null ? null : String(this.#fence)
    const time = isoTime(this.#clock.wall())
    return { time, event, host: hostname(), pid: process.pid, ...this.#about, fence }
  }
}

const BY_EXIT_CODE: Record<number, Outcome> = {
  [EXIT.usage]: 'usage',
  [EXIT.unavailable]: 'unavailable',
  [EXIT.unsafe]: 'unsafe',
  [EXIT.lost]: 'lost',
}

function waitFacts(obstacle: Obstacle): Record<string, unknown> {
  if (obstacle.kind === 'held') return { because: 'held', holder: obstacle.holder ?? null }
  if (obstacle.kind === 'unavailable') return { because: 'unavailable', message: obstacle.error }
  return { because: 'not-ready', message: obstacle.why, retryAfterMs: Math.round(obstacle.retryAfterMs) }
}
