/** Part of the environment: the only other file that touches real clocks and timers. */
import { AsyncResource } from 'node:async_hooks'
import { Agenda, type Entry } from './agenda.js'
import type { Clock, Timer, TimerOptions } from './environment.js'
import type { SuspendMeter } from './suspend-meter.js'

// Taken once, so that a test framework's fake clocks in the user's process cannot reach a deadline.
export const monotonic = performance.now.bind(performance)
const wall = Date.now.bind(Date)
const startTimer = setTimeout
const stopTimer = clearTimeout
const startTicker = setInterval

/** Node's timers fire at once beyond this. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** How often pending timers are compared with the clock: a resumed machine's timers are late by the time it slept. */
const RESUME_LOOK_MS = 100
/** The wall clock and the monotonic clock part by more than this only when something happened. */
const WALL_TOLERANCE_MS = 2
/** The longest time for which a look at the boot clock is trusted. */
const BOOT_LOOK_MS = 250
/**
 * `now()` counts suspend where the boot clock can be believed (`meter`). All its timers are one of
 * Node's, set for the earliest: most are cancelled long before their time, and then cost a tenth of what Node's own do.
 */
export class SystemClock implements Clock {
  readonly #meter: SuspendMeter | null
  readonly #agenda = new Agenda<SystemTimer>()
  /** Node's timer, and what it is set for. That one may have been cancelled since: then it fires for nothing. */
  #handle: NodeJS.Timeout | undefined
  #armedFor: number | null = null
  /** Timers to come that keep the process running, and those that count suspend. */
  #keptAliveBy = 0
  #prompt = 0
  #ticker: NodeJS.Timeout | undefined
  /** The suspend that Node's timer allows for. */
  #armedAfter = 0
  #lastWallAhead = 0
  #lastLook = Number.NEGATIVE_INFINITY

  constructor(meter: SuspendMeter | null) {
    this.#meter = meter
  }

  now(): number {
    const mono = monotonic()
    const meter = this.#meter
    if (!meter) return mono
    // Reading the boot clock costs 7 µs, the wall clock 40 ns. A resume moves the wall clock ahead of the monotonic
    // one; so does an administrator, which then costs us one look.
    const wallAhead = wall() - mono
    if (Math.abs(wallAhead - this.#lastWallAhead) > WALL_TOLERANCE_MS || mono - this.#lastLook > BOOT_LOOK_MS) {
      meter.look()
      this.#lastWallAhead = wallAhead
      this.#lastLook = mono
    }
    return mono + meter.suspended
  }

  wall(): number {
    return wall()
  }

  timer(ms: number, callback: () => void, { keepAlive = false, prompt = false }: TimerOptions = {}): Timer {
    // What is no number is due at once, as with Node's.
    const timer = new SystemTimer(this, this.now() + Math.max(ms || 0, 0), callback, keepAlive, prompt)
    this.#agenda.add(timer)
    if (prompt) this.#prompt++
    if (prompt && this.#meter) this.#ticker ??= startTicker(() => this.#tick(), RESUME_LOOK_MS).unref()
    if (keepAlive && this.#keptAliveBy++ === 0) this.#handle?.ref()
    // After a suspend, Node's timer is set for a time that is long past, and late: it must not hold up a new one.
    if (this.#armedFor === null || timer.due < this.#armedFor || this.#suspended !== this.#armedAfter) this.#arm()
    return timer
  }

  cancel(timer: SystemTimer): void {
    if (this.#agenda.cancel(timer)) this.#forget(timer)
  }

  get #suspended(): number {
    return this.#meter?.suspended ?? 0
  }

  #forget({ keepAlive, prompt }: SystemTimer): void {
    if (prompt) this.#prompt--
    if (keepAlive && --this.#keptAliveBy === 0) this.#handle?.unref()
  }

  #arm(): void {
    stopTimer(this.#handle)
    const due = this.#agenda.first?.due
    this.#armedFor = due ?? null
    this.#handle = undefined
    if (due === undefined) return
    const remaining = Math.min(Math.max(due - this.now(), 0), MAX_TIMER_MS)
    // Node counts whole milliseconds from the start of a turn: without one more, most would fire early, and twice.
    this.#handle = startTimer(() => this.#fire(), Math.min(Math.ceil(remaining) + 1, MAX_TIMER_MS))
    if (this.#keptAliveBy === 0) this.#handle.unref()
    this.#armedAfter = this.#suspended
  }

  // Node's timers may fire up to a millisecond early, and a wait beyond 2^31-1 ms takes several of them.
  #fire(): void {
    this.#handle = undefined
    // Nobody need arm until all that is due was called.
    this.#armedFor = Number.NEGATIVE_INFINITY
    const now = this.now()
    // What is added meanwhile comes later, even if it is due: others want their turn of the loop.
    const { added } = this.#agenda
    try {
      for (;;) {
        const timer = this.#agenda.first
        if (!timer || timer.due > now || timer.sequence >= added) return
        const callback = this.#agenda.take()
        this.#forget(timer)
        // One that throws ends this; the rest are called in the next turn.
        if (callback) timer.runInAsyncScope(callback)
      }
    } finally {
      this.#arm()
    }
  }

  #tick(): void {
    if (this.#prompt === 0) {
      stopTimer(this.#ticker)
      this.#ticker = undefined
      return
    }
    this.now()
    // Not "grew in this call": whoever read the clock first after the resume has noticed it already.
    if (this.#suspended !== this.#armedAfter) this.#arm()
  }
}

/** It is called in the async context (AsyncLocalStorage) of whoever wanted it, not of whoever armed Node's timer. */
class SystemTimer extends AsyncResource implements Timer, Entry {
  readonly due: number
  sequence = 0
  callback: (() => void) | null
  readonly keepAlive: boolean
  readonly prompt: boolean
  readonly #clock: SystemClock

  constructor(clock: SystemClock, due: number, callback: () => void, keepAlive: boolean, prompt: boolean) {
    super('HoldfastTimer')
    this.due = due
    this.callback = callback
    this.keepAlive = keepAlive
    this.prompt = prompt
    this.#clock = clock
  }

  cancel(): void {
    this.#clock.cancel(this)
  }
}
