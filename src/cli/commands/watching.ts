/** Looks again and again: a screen that stays for a person, a line or a block for each change for a program. */
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { sleep, systemEnvironment } from '../../environment.js'
import { textOf } from '../../messages.js'
import { has, optionOf, type Parsed } from '../args.js'
import { EXIT, exitCodeOf, exitOfSignal, usageError } from '../exit.js'
import { formatDuration, parseDuration, writtenDuration } from '../text/duration.js'
import { inOurWords } from '../text/our-words.js'
import { print, printable, say } from '../text/output.js'
import { Screen, terminalSize } from '../text/screen.js'
import { clockTime, isoTime } from '../text/wall-time.js'

export interface Watched<T> {
  /** What is watched, for the head of a screen. */
  readonly title: string
  /** The store that is asked. */
  readonly place: string
  readonly look: () => Promise<T>
  /** Answers that are alike in this are no change. */
  readonly identity: (answer: T) => unknown
  /** For people; within so many cells, or uncut. */
  readonly text: (answer: T, width: number | null) => string
  readonly json: (answer: T) => unknown
}

const DEFAULT_MS = 1_000
const LEAST_MS = 100
/** What a store that answered before may recover from. */
const PASSING: readonly (number | null)[] = [EXIT.unavailable, EXIT.held, EXIT.unsafe]

/** Time between two looks; `null` when one look was asked for. */
export function intervalOf(parsed: Parsed): number | null {
  const text = optionOf(parsed, 'interval')
  if (!has(parsed, 'watch')) {
    if (text !== undefined) throw usageError('--interval is for --watch; give both, or neither')
    return null
  }
  if (text === undefined) return DEFAULT_MS
  const ms = parseDuration('--interval', text)
  if (ms < LEAST_MS) throw usageError(`--interval must be at least ${LEAST_MS}ms, but got ${writtenDuration(ms)}`)
  return ms
}

/** Until a signal ends it (128 + n), or there is a change and nobody reads any more (0). A store that never answered is an error at once. */
export async function watch<T>(watched: Watched<T>, intervalMs: number, json: boolean): Promise<number> {
  const first = await watched.look()
  const watching = new Watching(watched, intervalMs, json)
  try {
    return await Promise.race([untilSignal(() => watching.isWriting), watching.run(first)])
  } finally {
    watching.close()
  }
}

/** Node does not end while a write is stuck in a pipe whose reader stalls; the signal itself ends that, too. */
function untilSignal(isWriting: () => boolean): Promise<number> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
      process.once(signal, () => {
        if (!isWriting()) return resolve(exitOfSignal(constants.signals[signal]))
        process.removeAllListeners(signal)
        process.kill(process.pid, signal)
      })
    }
  })
}

class Watching<T> {
  readonly #watched: Watched<T>
  readonly #intervalMs: number
  readonly #json: boolean
  readonly #screen: Screen | null
  readonly #clock = systemEnvironment().clock
  #wake = new AbortController()
  /** Since when, on the wall clock, and why there is no answer. */
  #trouble: { readonly since: number; readonly why: string } | null = null
  #told: string | null = null
  isWriting = false

  constructor(watched: Watched<T>, intervalMs: number, json: boolean) {
    this.#watched = watched
    this.#intervalMs = intervalMs
    this.#json = json
    this.#screen = json || !isatty(1) ? null : new Screen(() => this.#wake.abort())
  }

  async run(first: T): Promise<number> {
    let answer = first
    while (await this.#show(answer)) {
      await this.#pause()
      const next = await this.#look()
      if (next) answer = next.answer
    }
    return EXIT.ok
  }

  close(): void {
    this.#screen?.close()
  }

  async #look(): Promise<{ readonly answer: T } | null> {
    try {
      const answer = await this.#watched.look()
      if (this.#trouble && !this.#screen) say(`${this.#watched.place} answers again`)
      this.#trouble = null
      return { answer }
    } catch (error) {
      if (!PASSING.includes(exitCodeOf(error))) throw error
      const why = inOurWords(textOf(error))
      if (!this.#trouble && !this.#screen) say(`${why}; trying again every ${formatDuration(this.#intervalMs)}`)
      this.#trouble = { since: this.#trouble?.since ?? this.#clock.wall(), why }
      return null
    }
  }

  /** Gives whether somebody still reads. */
  async #show(answer: T): Promise<boolean> {
    if (this.#screen) {
      await this.#screen.draw(this.#page(answer))
      return true
    }
    const identity = JSON.stringify(this.#watched.identity(answer))
    if (identity === this.#told) return true
    this.#told = identity
    const text = this.#json
      ? JSON.stringify(this.#watched.json(answer))
      : `${isoTime(this.#clock.wall())}\n${this.#watched.text(answer, null)}`
    this.isWriting = true
    const goesOn = await print(`${text}\n`)
    this.isWriting = false
    return goesOn
  }

  #page(answer: T): string {
    const { title, text } = this.#watched
    const every = formatDuration(this.#intervalMs)
    const head = printable(`${title} · ${clockTime(this.#clock.wall())} · every ${every}, Ctrl-C ends it`)
    const trouble =
      this.#trouble &&
      printable(`no answer since ${clockTime(this.#trouble.since)}: ${this.#trouble.why}; trying again`)
    return `${head}\n${trouble ?? ''}\n${text(answer, terminalSize()?.columns ?? null)}`
  }

  async #pause(): Promise<void> {
    this.#wake = new AbortController()
    await sleep(this.#clock, this.#intervalMs, { signal: this.#wake.signal, keepAlive: true })
  }
}
