import type { ChildProcess } from 'node:child_process'
import type { Clock, Timer } from '../environment.js'

/** Who dies sooner than this was not killed by somebody's hand: the next one is started later and later. */
const SHORT_LIFE_MS = 1_000
const PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000

export interface CompanionEvents {
  /** A line that it wrote to its stdout. */
  said(line: string): void
  /** Another process has taken the place of one that died. */
  replaced(): void
  /** None could be started; it is tried again. */
  failed(error: NodeJS.ErrnoException): void
}

/**
 * A process that must be there as long as the command is: started anew whenever it dies. It is told the last line of
 * what it has to know.
 */
export class Companion {
  readonly #spawn: () => ChildProcess
  readonly #clock: Clock
  readonly #events: CompanionEvents
  #child: ChildProcess
  #bornAt: number
  #line = ''
  #pauseMs = 0
  #isLeft = false
  #next: Timer | undefined
  #stopped: Promise<void> | null = null
  /** Resolved by the end of the process that is there now. */
  #gone: Promise<void> = Promise.resolve()

  constructor(spawn: () => ChildProcess, clock: Clock, events: CompanionEvents) {
    this.#spawn = spawn
    this.#clock = clock
    this.#events = events
    this.#bornAt = clock.now()
    this.#child = this.#start()
  }

  /** `undefined` while there is none. */
  get pid(): number | undefined {
    return this.#child.exitCode === null && this.#child.signalCode === null ? this.#child.pid : undefined
  }

  /** Its stdin, to be shared with another process: who reads it sees the end only when all who write are gone. */
  get pipe() {
    const { stdin } = this.#child
    return stdin && !stdin.destroyed && this.pid !== undefined ? stdin : null
  }

  tell(line: string): void {
    this.#line = line
    this.#child.stdin?.write(line)
  }

  /** It does not do its work any more: another takes its place, and is there before this one goes. */
  replace(): void {
    if (!this.#isLeft) this.#begin()
  }

  /** Its end is not replaced any more. */
  leave(): void {
    this.#isLeft = true
    this.#next?.cancel()
  }

  /** Resolves when it is gone. */
  stop(): Promise<void> {
    this.leave()
    this.#stopped ??= this.#gone
    this.#child.kill('SIGKILL')
    return this.#stopped
  }

  #start(): ChildProcess {
    const child = this.#spawn()
    this.#bornAt = this.#clock.now()
    // Written to a process that has just died: its end says all there is to say.
    child.stdin?.on('error', () => {})
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
      const lines = (text + piece).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) this.#events.said(line)
    })
    this.#gone = new Promise((resolve) => {
      const gone = () => {
        resolve()
        if (child === this.#child) this.#beginAgain()
      }
      child.once('exit', gone)
      // Not started at all: no end would be told.
      child.once('error', (error) => {
        if (child.pid !== undefined) return
        this.#events.failed(error)
        gone()
      })
    })
    return child
  }

  #beginAgain(): void {
    if (this.#isLeft) return
    const wasShort = this.#clock.now() - this.#bornAt < SHORT_LIFE_MS
    const pauseMs = wasShort ? this.#pauseMs : 0
    this.#pauseMs = wasShort ? Math.min(Math.max(2 * pauseMs, PAUSE_MS), LONGEST_PAUSE_MS) : 0
    this.#next?.cancel()
    this.#next = this.#clock.timer(pauseMs, () => this.#begin())
  }

  /** There is never more than one: whoever was there before is told nothing any more, and must go. */
  #begin(): void {
    this.#next?.cancel()
    const old = this.#child
    try {
      this.#child = this.#start()
    } catch (error) {
      this.#events.failed(error as NodeJS.ErrnoException)
      return this.#beginAgain()
    }
    old.kill('SIGKILL')
    this.tell(this.#line)
    this.#events.replaced()
  }
}
