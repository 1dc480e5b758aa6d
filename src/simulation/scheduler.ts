import { turn } from '../environment.js'

/** Something that will happen at a moment of simulated time, unless it is cancelled first. */
export interface Scheduled {
  cancel(): void
}

/** Turns of the event loop asked for at once: one pass of Node's loop runs them all, which makes each three times cheaper. */
const TURNS = 64
/** Cancelled events are thrown out when there are this many and they are the larger half. */
const PURGE_FROM = 256
const DEFAULT_LIMIT_MS = 3_600_000

/**
 * Simulated time: a heap of events in the order of (time, sequence). Between two events everything that is already
 * settled runs to its end, so code under test is real asynchronous code, and its order depends on nothing but the
 * events. One driver at a time: `advance` and `runUntil` must not overlap.
 */
export class Scheduler {
  readonly #heap: Event[] = []
  #now = 0
  #sequence = 0
  #cancelled = 0
  #turns: Promise<void>[] = []
  #driving = false

  /** True time in ms since the start; each clock shows its own idea of it. */
  get now(): number {
    return this.#now
  }

  /** How many events are still to come. */
  get pending(): number {
    return this.#heap.length - this.#cancelled
  }

  /** Runs `callback` at `time`; at once (but never within this call) when that has passed. */
  at(time: number, callback: () => void): Scheduled {
    if (!(time < Number.POSITIVE_INFINITY)) throw new RangeError(`time must be a finite number, but got ${time}`)
    const event: Event = { time, sequence: this.#sequence++, callback }
    push(this.#heap, event)
    return { cancel: () => this.#cancel(event) }
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
        const event = this.#next()
        if (!event || enough(event.time)) return
        pop(this.#heap)
        this.#now = Math.max(this.#now, event.time)
        const { callback } = event
        event.callback = null
        callback?.()
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

  #next(): Event | undefined {
    for (;;) {
      const event = this.#heap[0]
      if (!event || event.callback) return event
      pop(this.#heap)
      this.#cancelled--
    }
  }

  #cancel(event: Event): void {
    if (!event.callback) return
    event.callback = null
    this.#cancelled++
    if (this.#cancelled < PURGE_FROM || this.#cancelled * 2 < this.#heap.length) return
    const left = this.#heap.filter((each) => each.callback)
    this.#heap.length = 0
    for (const each of left) push(this.#heap, each)
    this.#cancelled = 0
  }
}

interface Event {
  readonly time: number
  readonly sequence: number
  /** Null once it was cancelled or has run. */
  callback: (() => void) | null
}

const before = (a: Event, b: Event) => a.time < b.time || (a.time === b.time && a.sequence < b.sequence)

function push(heap: Event[], event: Event): void {
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const up = (at - 1) >> 1
    const parent = heap[up]
    if (!parent || before(parent, event)) break
    heap[at] = parent
    at = up
  }
  heap[at] = event
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (!first || !last || heap.length === 0) return first
  let at = 0
  for (;;) {
    let down = 2 * at + 1
    const left = heap[down]
    const right = heap[down + 1]
    if (!left) break
    if (right && before(right, left)) down++
    const child = heap[down]
    if (!child || before(last, child)) break
    heap[at] = child
    at = down
  }
  heap[at] = last
  return first
}
