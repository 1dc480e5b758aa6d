import type { Clock, HostClock, Timer } from '../environment.js'
import type { Scheduled, Scheduler } from './scheduler.js'

export interface ClockOptions {
  /** How fast it runs against true time. Default 1. */
  readonly rate?: number
  /** What it shows at the start, in ms. Default 0. */
  readonly offsetMs?: number
  /** What its wall clock shows at the start, in ms since 1970. */
  readonly wallMs?: number
  /** Machines with the same identity read the same host clock. Default: of its own. */
  readonly identity?: string | null
}

/** A Sunday in 2001: far from every edge of a number. */
const WALL_START_MS = 1e12

/** One machine's clock in simulated time: it may run fast or slow, sleep, and have its wall clock stepped. */
export class VirtualClock implements Clock {
  readonly host: HostClock
  readonly #scheduler: Scheduler
  readonly #timers = new Set<VirtualTimer>()
  #rate: number
  #localBase: number
  #trueBase: number
  /** A timer that has fired proves that its time has come, whatever the rounding says. */
  #floor = Number.NEGATIVE_INFINITY
  #wallAhead: number
  #pauses = 0
  #sleeps = 0
  #asleepSince = 0
  #sleptMs = 0
  #held: (() => void)[] = []

  constructor(scheduler: Scheduler, options: ClockOptions = {}) {
    const { rate = 1, offsetMs = 0, wallMs = WALL_START_MS, identity = 'virtual' } = options
    this.#scheduler = scheduler
    this.#rate = rate
    this.#localBase = offsetMs
    this.#trueBase = scheduler.now
    this.#wallAhead = wallMs - offsetMs
    this.host = { identity, now: () => (this.#sleeps > 0 ? this.#asleepSince : this.now()) - this.#sleptMs }
  }

  now(): number {
    return Math.max(this.#floor, this.#localBase + (this.#scheduler.now - this.#trueBase) * this.#rate)
  }

  wall(): number {
    return this.now() + this.#wallAhead
  }

  timer(ms: number, callback: () => void, options: { readonly keepAlive?: boolean } = {}): Timer {
    const timer = new VirtualTimer(this.now() + Math.max(ms, 0), options.keepAlive ?? false, () => {
      this.#timers.delete(timer)
      this.#floor = Math.max(this.#floor, timer.due)
      callback()
    })
    this.#timers.add(timer)
    this.#arm(timer)
    return { cancel: () => this.#cancel(timer) }
  }

  /** Timers that have neither fired nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Those of them that would keep a process running. */
  get keptAliveBy(): number {
    return [...this.#timers].filter((timer) => timer.keepAlive).length
  }

  /** From now on it runs at another rate. */
  setRate(rate: number): void {
    this.#localBase = this.now()
    this.#trueBase = this.#scheduler.now
    this.#rate = rate
    for (const timer of this.#timers) this.#arm(timer)
  }

  /** An administrator, or NTP, sets the wall clock. Moves nothing else. */
  stepWall(ms: number): void {
    this.#wallAhead += ms
  }

  /** A busy loop in the process: time passes for everybody, and nothing at all runs until this returns. */
  block(ms: number): void {
    this.#scheduler.block(ms / this.#rate)
  }

  /** The process is stopped, or its loop blocked, for `ms` of true time: its callbacks are held, others go on. */
  pause(ms: number): void {
    this.#pauses++
    this.#scheduler.at(this.#scheduler.now + ms, () => this.#resume())
  }

  /** The machine sleeps for `ms` of true time: as `pause`, and its host clock stands still. */
  suspend(ms: number): void {
    if (this.#sleeps++ === 0) this.#asleepSince = this.now()
    this.#pauses++
    this.#scheduler.at(this.#scheduler.now + ms, () => {
      if (--this.#sleeps === 0) this.#sleptMs += this.now() - this.#asleepSince
      this.#resume()
    })
  }

  #resume(): void {
    if (--this.#pauses > 0) return
    for (const fire of this.#held.splice(0)) this.#scheduler.at(this.#scheduler.now, fire)
  }

  #arm(timer: VirtualTimer): void {
    timer.event?.cancel()
    const inTrueMs = (timer.due - this.now()) / this.#rate
    timer.event = this.#scheduler.at(this.#scheduler.now + inTrueMs, () => this.#come(timer))
  }

  #come(timer: VirtualTimer): void {
    if (!this.#timers.has(timer)) return
    if (this.#pauses > 0) this.#held.push(() => this.#come(timer))
    else timer.fire()
  }

  #cancel(timer: VirtualTimer): void {
    this.#timers.delete(timer)
    timer.event?.cancel()
  }
}

class VirtualTimer {
  readonly due: number
  readonly keepAlive: boolean
  readonly fire: () => void
  event: Scheduled | undefined

  constructor(due: number, keepAlive: boolean, fire: () => void) {
    this.due = due
    this.keepAlive = keepAlive
    this.fire = fire
  }
}
