/**
 * The second seam: time and randomness. This is the only file that may touch real clocks, timers and randomness
 * (`test/tidy.test.ts` says so); everything else takes an {@link Environment}.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { uptime } from 'node:os'
import { readStat } from './process-stat.js'
import { randomBytes } from './random-bytes.js'
import type { Cancellation } from './store.js'
import { SuspendMeter } from './suspend-meter.js'

export interface Timer {
  cancel(): void
}

export interface Clock {
  /**
   * Milliseconds since some start. Never goes back, is not moved by steps of the wall clock, and includes the time
   * that the machine was suspended, on every read.
   */
  now(): number
  /** The wall clock in ms since 1970: for fences and for people, never for a deadline. */
  wall(): number
  /** Calls back once, never before `now()` has grown by `ms`. */
  timer(ms: number, callback: () => void, options?: TimerOptions): Timer
}

export interface TimerOptions {
  /** Keeps the process running. Default `false`. */
  readonly keepAlive?: boolean
  /**
   * Counts time in suspend: at most 100 ms late after a resume, where another timer is late by the time that the
   * machine slept. For deadlines; it costs a look at the clock ten times a second. Default `false`.
   */
  readonly prompt?: boolean
}

/**
 * A clock that other processes of this host can read too. Two processes whose `identity` is the same read the same
 * clock; `null` means that nobody can be sure. It may stop while the machine is suspended.
 */
export interface HostClock {
  readonly identity: string | null
  now(): number
}

export interface Random {
  /** Uniform in [0, 1): for jitter. */
  next(): number
  /** 160 random bits as text, good enough to be a secret. */
  id(): string
}

export interface Environment {
  readonly clock: Clock
  readonly host: HostClock
  readonly random: Random
}

/** Resolves after `ms`, or as soon as `signal` aborts; never rejects. */
export function sleep(
  clock: Clock,
  ms: number,
  options: { signal?: Cancellation; keepAlive?: boolean } = {},
): Promise<void> {
  const { signal, keepAlive = false } = options
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      timer.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.timer(ms, done, { keepAlive })
    signal?.addEventListener('abort', done)
  })
}

/** One turn of the event loop: what is settled already runs to its end. For simulators. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

// Taken once, so that a test framework's fake clocks in the user's process cannot reach a deadline.
const monotonic = performance.now.bind(performance)
const wall = Date.now.bind(Date)
const startTimer = setTimeout
const stopTimer = clearTimeout
const startTicker = setInterval
const hrtime = process.hrtime.bigint.bind(process.hrtime)

/** Node's timers fire at once beyond this. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** How often pending timers are compared with the clock: a resumed machine's timers are late by the time it slept. */
const RESUME_LOOK_MS = 100
/** The wall clock and the monotonic clock part by more than this only when something happened. */
const WALL_TOLERANCE_MS = 2
/** The longest time for which a look at the boot clock is trusted. */
const BOOT_LOOK_MS = 250
/** `now()` counts suspend where the boot clock can be believed; see {@link bootClockIsOurs}. */
class SystemClock implements Clock {
  readonly #meter: SuspendMeter | null
  readonly #pending = new Set<SystemTimer>()
  #ticker: NodeJS.Timeout | undefined
  /** The suspend that pending timers allow for. */
  #rearmedFor = 0
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
    const timer = new SystemTimer(this, this.now() + ms, callback, keepAlive, (t) => this.#pending.delete(t))
    if (!prompt || !this.#meter) return timer
    this.#pending.add(timer)
    this.#ticker ??= startTicker(() => this.#lookAtPending(), RESUME_LOOK_MS).unref()
    return timer
  }

  #lookAtPending(): void {
    if (this.#pending.size === 0) {
      clearInterval(this.#ticker)
      this.#ticker = undefined
      return
    }
    this.now()
    const suspended = this.#meter?.suspended ?? 0
    // Not "grew in this call": whoever read the clock first after the resume has noticed it already.
    if (suspended === this.#rearmedFor) return
    this.#rearmedFor = suspended
    for (const timer of [...this.#pending]) timer.rearm()
  }
}

class SystemTimer implements Timer {
  readonly #clock: Clock
  readonly #due: number
  readonly #callback: () => void
  readonly #keepAlive: boolean
  readonly #forget: (timer: SystemTimer) => void
  #handle: NodeJS.Timeout | undefined

  constructor(clock: Clock, due: number, callback: () => void, keepAlive: boolean, forget: (t: SystemTimer) => void) {
    this.#clock = clock
    this.#due = due
    this.#callback = callback
    this.#keepAlive = keepAlive
    this.#forget = forget
    this.rearm()
  }

  rearm(): void {
    stopTimer(this.#handle)
    const remaining = Math.min(Math.max(this.#due - this.#clock.now(), 0), MAX_TIMER_MS)
    // Node counts whole milliseconds from the start of a turn: without one more, most would fire early, and twice.
    this.#handle = startTimer(() => this.#look(), Math.min(Math.ceil(remaining) + 1, MAX_TIMER_MS))
    if (!this.#keepAlive) this.#handle.unref()
  }

  // Node's timers may fire up to a millisecond early, and a wait beyond 2^31-1 ms takes several of them.
  #look(): void {
    if (this.#clock.now() < this.#due) return this.rearm()
    this.#forget(this)
    this.#callback()
  }

  cancel(): void {
    stopTimer(this.#handle)
    this.#forget(this)
  }
}

const readText = (path: string): string | null => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null
  }
}

/**
 * Containers may show an invented `/proc/uptime` (lxcfs does). The kernel tells when the threads of this process were
 * started, on the boot clock and beyond anybody's invention; Node starts its workers within its first moments, which
 * we know on the monotonic clock. When the two disagree by more than a second, the file is not the clock.
 */
function bootClockIsOurs(): boolean {
  if (process.platform !== 'linux') return false
  try {
    // Not process.pid: /proc may show another pid namespace than ours.
    const main = readlinkSync('/proc/self')
    const starts = readdirSync('/proc/self/task')
      .filter((task) => task !== main)
      .map((task) => Number(readStat(`/proc/self/task/${task}`)?.started) * 10)
    const workersStarted = Math.min(...starts)
    const expected = workersStarted + process.uptime() * 1000
    return Math.abs(uptime() * 1000 - expected) < 1000
  } catch {
    return false
  }
}

/**
 * The host's monotonic clock (CLOCK_MONOTONIC), which all processes of one kernel and one time namespace share. Its
 * identity is the boot id and the namespace's offsets: inode numbers of namespaces are reused at once.
 */
function systemHostClock(): HostClock {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim()
  const offsets = readText('/proc/self/timens_offsets')?.trim().replace(/\s+/g, ' ') ?? 'no time namespaces'
  const identity = process.platform === 'linux' && boot ? `${boot} ${offsets}` : null
  return { identity, now: () => Number(hrtime() / 1000n) / 1000 }
}

const systemRandom: Random = {
  next: () => randomBytes(4).readUInt32LE() / 2 ** 32,
  id: () => randomBytes(20).toString('base64url'),
}

let shared: Environment | undefined

/** Real time and randomness; made once per process. */
export function systemEnvironment(): Environment {
  const meter = () => (bootClockIsOurs() ? new SuspendMeter(() => uptime() * 1000, monotonic) : null)
  shared ??= { clock: new SystemClock(meter()), host: systemHostClock(), random: systemRandom }
  return shared
}
