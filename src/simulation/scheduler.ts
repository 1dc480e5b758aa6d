import { Agenda, type Entry } from '../agenda.js'
import { turn } from '../environment.js'

/** Something that will happen at a moment of simulated time, unless it is cancelled first. */
export interface Scheduled {
  cancel(): void
}

/** Turns of the event loop asked for at once: one pass of Node's loop runs them all, which makes each three times cheaper. */
const TURNS = 64
const DEFAULT_LIMIT_MS = 3_600_000

/**
 * Simulated time: an agenda of events. Between two events everything that is already
 * settled runs to its end, so code under test is real asynchronous code, and its order depends on nothing but the
 * events. One driver at a time: `advance` and `runUntil` must not overlap.
 */
export class Scheduler {
  readonly #agenda = new Agenda<Entry>()
  #now = 0
  #turns: Promise<void>[] = []
  #driving = false

  /** True time in ms since the start; each clock shows its own idea of it. */
  get now(): number {
    return this.#now
  }

  /** How many events are still to come. */
  get pending(): number {
    return this.#agenda.size
  }

  /** Runs `callback` at `time`; at once (but never within this call) when that has passed. */
  at(time: number, callback: () => void): Scheduled {
    if (!(time < Number.POSITIVE_INFINITY)) throw new RangeError(`time must be a finite number, but got ${time}`)
    const event: Entry = { due: time, sequence: 0, callback }
    this.#agenda.add(event)
    return { cancel: () => void this.#agenda.cancel(event) }
  }

  /** Lets `ms` of simulated time pass. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms
    await this.#drive((next) => next > until)
    this.#now = Math.max(this.#now, until)
  }

  /**
   * Lets time pass until `work` settles, and resolves or rejects as it does.
   * @throws when nothing is left that could settle it ("stuck"), or after `limitMs` of simulated time.
   */
  async runUntil<T>(work: Promise<T>, limitMs = DEFAULT_LIMIT_MS): Promise<T> {
    let settled = false
    const settle = () => {
      settled = true
    }
    work.then(settle, settle)
    const until = this.#now + limitMs
    await this.#drive((next) => settled || next > until)
    if (settled) return work
    if (this.pending === 0)
      throw new Error(`stuck at ${this.#now} ms: nothing is left to happen, and the work has not settled`)
    throw new Error(`the work has not settled within ${limitMs} ms of simulated time`)
  }

  /** Time passes and nothing runs, as in a busy loop: may be called from within an event. */
  block(ms: number): void {
    this.#now += ms
  }

  /** Runs events until `enough`, which is asked with the time of the next one, says so, or until none is left. */
  async #drive(enough: (next: number) => boolean): Promise<void> {
    if (this.#driving) throw new Error('the scheduler is already being driven: advance and runUntil must not overlap')
    this.#driving = true
    try {
      for (;;) {
        await this.#settle()
        const event = this.#agenda.first
        if (!event || enough(event.due)) return
        this.#now = Math.max(this.#now, event.due)
        this.#agenda.take()?.()
      }
    } finally {
      this.#turns = []
      this.#driving = false
    }
  }

  /** Everything that can run without time passing has run. A turn that has already come would not wait for it. */
  #settle(): Promise<void> {
    if (this.#turns.length === 0) this.#turns = Array.from({ length: TURNS }, turn).reverse()
    return this.#turns.pop() ?? turn()
  }
}
