import { type Clock, sleep, type Timer } from '../environment.js'
import { LeaseLostError } from '../errors.js'
import type { Lease } from '../lease.js'
import { type Plan, stepAt } from './plan.js'
import type { ProcessInfo } from './processes.js'
import { QUIET_LOOKS, type Tree } from './tree.js'

/** How often a command that was told to end is looked at, and one that was killed. */
const ENDING_LOOK_MS = 20
const KILLED_LOOK_MS = 5
/** What outlives KILL for so long (an uninterruptible call on a dead disk, or ever new processes) is named instead. */
const UNKILLABLE_MS = 5_000

export interface GuardEvents {
  /** TERM was sent; KILL follows after `killInMs`. */
  terminating(killInMs: number): void
  killing(): void
}

/**
 * Watches the lease while its command runs, and ends the command, with everything it started, before the lease can be
 * another's: TERM, then KILL, in time for the deadline when it nears unrenewed; at once when the lease is definitely
 * lost; after a revoke TERM first, since the key stays taken while the holder tidies up.
 */
export class Guard {
  readonly #lease: Lease
  readonly #clock: Clock
  readonly #plan: Plan
  readonly #tree: Tree
  readonly #events: GuardEvents
  #state: 'watching' | 'ending' | 'done' = 'watching'
  /** The last known deadline on our clock; a lost lease tells none. */
  #deadline = Number.NEGATIVE_INFINITY
  #killAt = Number.POSITIVE_INFINITY
  #timer: Timer | undefined
  #commandEnded = false
  #finish: (left: readonly ProcessInfo[]) => void = () => {}
  readonly #onAbort = () => this.#lost()
  /** Resolves when the command was ended, with what could be seen of it to the last: nothing, if all went well. */
  readonly allDead: Promise<readonly ProcessInfo[]>

  constructor(lease: Lease, clock: Clock, plan: Plan, tree: Tree, events: GuardEvents) {
    this.#lease = lease
    this.#clock = clock
    this.#plan = plan
    this.#tree = tree
    this.#events = events
    this.allDead = new Promise((resolve) => {
      this.#finish = resolve
    })
    lease.signal.addEventListener('abort', this.#onAbort)
    this.look()
  }

  /** The command is being ended, or was: it is not protected to its end. */
  get ending(): boolean {
    return this.#state === 'ending'
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
    this.#deadline = Math.max(this.#deadline, now + remaining)
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
    this.#stop()
    return true
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
    this.#stop()
    this.#state = 'ending'
    this.#killAt = killAt
    void this.#endTree()
  }

  #stop(): void {
    this.#state = 'done'
    this.#timer?.cancel()
    this.#lease.signal.removeEventListener('abort', this.#onAbort)
  }

  async #endTree(): Promise<void> {
    const clock = this.#clock
    if (clock.now() < this.#killAt) {
      this.#tree.terminate()
      this.#events.terminating(this.#killAt - clock.now())
      this.#lease.signal.addEventListener('abort', this.#onAbort)
      let quiet = 0
      while (clock.now() < this.#killAt) {
        quiet = this.#commandEnded && this.#tree.members().length === 0 ? quiet + 1 : 0
        if (quiet === QUIET_LOOKS) return this.#finish([])
        await sleep(clock, Math.min(ENDING_LOOK_MS, Math.max(this.#killAt - clock.now(), 0)), { keepAlive: true })
      }
    }
    this.#tree.kill()
    this.#events.killing()
    this.#finish(await this.#killed())
  }

  /** Looks after those that were killed, and kills what is found, until nobody is found twice in a row. */
  async #killed(): Promise<readonly ProcessInfo[]> {
    const clock = this.#clock
    const until = clock.now() + UNKILLABLE_MS
    let left: readonly ProcessInfo[] = []
    for (let quiet = 0; quiet < QUIET_LOOKS; ) {
      await sleep(clock, KILLED_LOOK_MS, { keepAlive: true })
      const seen = this.#tree.members()
      if (seen.length > 0) left = seen
      if (seen.length > 0) this.#tree.kill()
      quiet = this.#commandEnded && seen.length === 0 ? quiet + 1 : 0
      // Those that keep coming back may be between two processes at this very moment: named is who was seen last.
      if (clock.now() >= until && quiet < QUIET_LOOKS) return left
    }
    return []
  }
}
