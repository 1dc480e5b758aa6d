/**
 * The second seam: time and randomness. This is the only file that may touch real clocks, timers and randomness
 * (`test/tidy.test.ts` says so); everything else takes an {@link Environment}.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { uptime } from 'node:os'
import { readStat } from './process-stat.js'
import { randomBytes, randomText } from './random-bytes.js'
import type { Cancellation } from './store.js'
import { SuspendMeter } from './suspend-meter.js'
import { monotonic, SystemClock } from './system-clock.js'

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

const hrtime = process.hrtime.bigint.bind(process.hrtime)

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
  id: () => randomText(20),
}

let shared: Environment | undefined

/** Real time and randomness; made once per process. */
export function systemEnvironment(): Environment {
  const meter = () => (bootClockIsOurs() ? new SuspendMeter(() => uptime() * 1000, monotonic) : null)
  shared ??= { clock: new SystemClock(meter()), host: systemHostClock(), random: systemRandom }
  return shared
}
