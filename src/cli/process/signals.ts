import { constants } from 'node:os'
import { systemEnvironment, type Timer } from '../../environment.js'
import { type ControllingTerminal, controllingTerminal } from './terminal.js'
import type { Tree } from './tree.js'

/** End a wait; the whole command gets them. */
const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
/** Mean something to the command alone: its children may have no handler, and would die of them. */
const PRIVATE = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const
/** The keyboard sends these, and the window its new size, to the whole foreground. */
const TYPED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH']
/** What a handler of TSTP gets before everything is stopped. */
const STOP_HANDLER_MS = 50

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
 * Exactly once each: with a terminal the command is in our process group, and what the kernel sends to the foreground,
 * or a shell to its job, reaches the command without us. Who sent a signal cannot be asked for: what may come from the
 * terminal counts as coming from there.
 */
export class Signals {
  readonly #abort = new AbortController()
  readonly #terminal: ControllingTerminal | null = controllingTerminal()
  #tree: Tree | null = null
  #stopping: Timer | undefined
  #resumed: () => void = () => {}

  constructor() {
    for (const signal of ENDING) process.on(signal, () => this.#ending(signal))
    for (const signal of PRIVATE)
      process.on(signal, () => this.#reachedCommand(signal) || this.#tree?.signalCommand(signal))
    process.on('SIGCONT', () => {
      this.#stopping?.cancel()
      // Whatever we slept through comes first: a command whose lease ran out meanwhile must not go on.
      this.#resumed()
      if (!this.#terminal) this.#tree?.signal('SIGCONT')
    })
    // With a terminal the default is right: the kernel, or the shell, stops the command as well.
    if (!this.#terminal) process.on('SIGTSTP', () => this.#stopped())
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
    this.#stopping?.cancel()
    this.#resumed = () => {}
  }

  #ending(signal: NodeJS.Signals): void {
    if (!this.#tree) this.#abort.abort(new Interrupted(signal))
    else if (!this.#reachedCommand(signal)) this.#tree.signal(signal)
  }

  /**
   * The command first, then ourselves. In a session of its own only a handler hears TSTP, the kernel would ignore it for
   * everybody else (POSIX, orphaned process groups): who has one gets a moment for it.
   */
  #stopped(): void {
    const stop = () => {
      this.#tree?.signal('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    }
    if (!this.#tree) return stop()
    this.#tree.signal('SIGTSTP')
    this.#stopping?.cancel()
    this.#stopping = systemEnvironment().clock.timer(STOP_HANDLER_MS, stop)
  }

  #reachedCommand(signal: NodeJS.Signals): boolean {
    const terminal = this.#terminal
    if (!terminal) return false
    if (TYPED.includes(signal)) return terminal.isForeground()
    // A hang-up takes the terminal from the whole session. It goes to the leader alone, and from there by the shell to
    // everybody else.
    return signal === 'SIGHUP' && !terminal.weLeadSession && controllingTerminal() === null
  }
}
