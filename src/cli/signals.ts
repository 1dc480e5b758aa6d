import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { readProcess } from './processes.js'
import type { Tree } from './tree.js'

/** End a wait; the whole command gets them. */
const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
/** Mean something to the command alone: its children may have no handler, and would die of them. */
const PRIVATE = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const

export class Interrupted extends Error {
  readonly number: number
  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`)
    this.number = constants.signals[signal]
  }
}

/**
 * Signals that holdfast gets: before the command runs they end the wait, then they are the command's.
 *
 * Exactly once each: on a terminal the kernel sends what the keyboard does (and the shell the hang-up) to everybody
 * in the foreground, the command included, so these are not sent again.
 */
export class Signals {
  readonly #abort = new AbortController()
  readonly #fromTerminal: readonly NodeJS.Signals[]
  #tree: Tree | null = null
  #resumed: () => void = () => {}

  constructor() {
    this.#fromTerminal = isatty(0) ? terminalSignals() : []
    for (const signal of ENDING) process.on(signal, () => this.#ending(signal))
    for (const signal of PRIVATE)
      process.on(signal, () => this.#sentByTerminal(signal) || this.#tree?.signalCommand(signal))
    process.on('SIGCONT', () => {
      // Whatever we slept through comes first: a command whose lease ran out meanwhile must not go on.
      this.#resumed()
      if (!this.#sentByTerminal('SIGCONT')) this.#tree?.signal('SIGCONT')
    })
  }

  /** Aborts with an {@link Interrupted} when a signal ends the wait. */
  get interrupted(): AbortSignal {
    return this.#abort.signal
  }

  forwardTo(tree: Tree, resumed: () => void): void {
    this.#tree = tree
    this.#resumed = resumed
  }

  /** The command has ended: what comes now finds nobody. */
  stop(): void {
    this.#tree = null
    this.#resumed = () => {}
  }

  #ending(signal: NodeJS.Signals): void {
    if (!this.#tree) this.#abort.abort(new Interrupted(signal))
    else if (!this.#sentByTerminal(signal)) this.#tree.signal(signal)
  }

  #sentByTerminal(signal: NodeJS.Signals): boolean {
    return this.#fromTerminal.includes(signal)
  }
}

/** A hang-up goes to the leader of the session alone, and from there by the shell to everybody else. */
function terminalSignals(): NodeJS.Signals[] {
  const always: NodeJS.Signals[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH', 'SIGCONT']
  return readProcess(process.pid)?.session === process.pid ? always : [...always, 'SIGHUP']
}
