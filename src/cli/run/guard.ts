import type { Clock, Timer } from '../../environment.js'
import { LeaseLostError } from '../../errors.js'
import { type EndingEvents, endTree } from '../process/ending.js'
import type { ProcessInfo } from '../process/processes.js'
import type { Tree } from '../process/tree.js'
import { type Plan, stepAt } from './plan.js'

const DEADLINE_STEP_MS = 1

/** What a guard needs of a lease: holdfast has the lease itself, its watchdog what it was told of it. */
export interface GuardedLease {
  /** Reading it ends a lease whose deadline has passed. */
  readonly remainingMs: number
  readonly signal: AbortSignal
}

export interface GuardEvents extends EndingEvents {
  /** A renewal got through: the deadline, on our clock, is later than it was. */
  deadlineMoved(deadline: number): void
}

/**
 * Watches the lease while its command runs, and ends the command, with everything it started, before the lease can be
 * another's: TERM, then KILL, in time for the deadline when it nears unrenewed; at once when the lease is definitely
 * lost; after a revoke TERM first, since the key stays taken while the holder tidies up.
 */
export class Guard {
  readonly #lease: GuardedLease
  readonly #clock: Clock
  readonly #plan: Plan
  readonly #tree: Tree
  readonly #events: GuardEvents
  #state: 'watching' | 'ending' | 'done' = 'watching'
  /** The last known deadline on our clock; a lost lease tells none. */
  #deadline = Number.NEGATIVE_INFINITY
  #killAt = Number.POSITIVE_INFINITY
  #timer: Timer | undefined
  #commandEnded: boolean
  #isTold = false
  #finish: (left: readonly ProcessInfo[]) => void = () => {}
  readonly #onAbort = () => this.#lost()
  /** Resolves when the command was ended, with what could be seen of it to the last: nothing, if all went well. */
  readonly allDead: Promise<readonly ProcessInfo[]>

  /** `waitsForCommand`: its end will be told with {@link commandEnded}; else only looking shows it. */
  constructor(
    lease: GuardedLease,
    clock: Clock,
    plan: Plan,
    tree: Tree,
    events: GuardEvents,
    { waitsForCommand }: { readonly waitsForCommand: boolean },
  ) {
    this.#lease = lease
    this.#clock = clock
    this.#plan = plan
    this.#tree = tree
    this.#events = events
    this.#commandEnded = !waitsForCommand
    this.allDead = new Promise((resolve) => {
      this.#finish = resolve
    })
    lease.signal.addEventListener('abort', this.#onAbort)
    this.look()
  }

  /** Nothing has begun to end the command. */
  get isWatching(): boolean {
    return this.#state === 'watching'
  }

  /** Reads the clock and does what is due; also when something may have changed. */
  look(): void {
    this.#timer?.cancel()
    if (this.#state !== 'watching') return
    const now = this.#clock.now()
    // Looking at it ends a lease whose deadline has passed, and that comes back to us through its signal.
    const remaining = this.#lease.remainingMs
    if (this.#lease.signal.aborted) this.#lost()
    if (this.#state !== 'watching') return
    // The clock goes on between the two reads above: less than this is no move.
    if (now + remaining > this.#deadline + DEADLINE_STEP_MS) {
      this.#deadline = now + remaining
      this.#events.deadlineMoved(this.#deadline)
    }
    const step = stepAt(now, this.#deadline, this.#plan)
    if (step === 'kill') return this.#end(now)
    if (step === 'terminate') return this.#end(this.#deadline - this.#plan.marginMs)
    const due = this.#deadline - this.#plan.marginMs - this.#plan.graceMs - now
    this.#timer = this.#clock.timer(Math.min(due, this.#plan.lookEveryMs), () => this.look(), { keepAlive: true })
  }

  /** The command itself has ended. True when it did so by itself, with the lease held to that moment. */
  commandEnded(): boolean {
    this.#commandEnded = true
    this.look()
    if (this.#state !== 'watching') return false
    this.stop()
    return true
  }

  /** Somebody else has begun to end the command, and sent TERM: see to it that nothing is left in time. */
  finish(): void {
    this.#isTold = true
    if (this.#state === 'watching') this.#end(this.#deadline - this.#plan.marginMs)
  }

  /** Watches no longer. What has begun to end is ended all the same. */
  stop(): void {
    this.#state = 'done'
    this.#timer?.cancel()
    this.#lease.signal.removeEventListener('abort', this.#onAbort)
  }

  #lost(): void {
    const reason: unknown = this.#lease.signal.reason
    const now = this.#clock.now()
    const patient = reason instanceof LeaseLostError && reason.reason === 'revoked'
    const latest = this.#deadline - this.#plan.marginMs
    const killAt = patient ? Math.min(now + this.#plan.graceMs, latest) : now
    if (this.#state === 'watching') this.#end(killAt)
    else this.#killAt = Math.min(this.#killAt, killAt)
  }

  #end(killAt: number): void {
    this.stop()
    this.#state = 'ending'
    this.#killAt = killAt
    // A loss that becomes definite meanwhile brings KILL nearer.
    if (!this.#lease.signal.aborted) this.#lease.signal.addEventListener('abort', this.#onAbort)
    const [clock, tree, events] = [this.#clock, this.#tree, this.#events]
    const [killAtNow, isCommandOver, isTold] = [() => this.#killAt, () => this.#commandEnded, () => this.#isTold]
    void endTree({ clock, tree, events, killAt: killAtNow, isCommandOver, isTold }).then(this.#finish)
  }
}
