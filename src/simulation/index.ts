/** Simulated time and seeded randomness, in which the production code runs unchanged: `holdfast/simulation`. */
import type { Environment } from '../environment.js'
import { type ClockOptions, VirtualClock } from './clock.js'
import { SeededRandom } from './random.js'
import { Scheduler } from './scheduler.js'

export { type ClockOptions, VirtualClock } from './clock.js'
export { SeededRandom } from './random.js'
export { type Scheduled, Scheduler } from './scheduler.js'

/** An {@link Environment} that gives the same run for the same seed. */
export interface VirtualEnvironment extends Environment {
  readonly clock: VirtualClock
  readonly random: SeededRandom
  readonly scheduler: Scheduler
  /** Another machine in the same simulated time, with a clock and randomness of its own. */
  machine(name: string, options?: ClockOptions): VirtualEnvironment
  /** Lets `ms` of true time pass. */
  advance(ms: number): Promise<void>
  /** Lets time pass until `work` settles; see {@link Scheduler.runUntil}. */
  runUntil<T>(work: Promise<T>, limitMs?: number): Promise<T>
}

/** The first machine of a new simulated world. */
export function virtualEnvironment(seed: string | number, options: ClockOptions = {}): VirtualEnvironment {
  return machineIn(new Scheduler(), new SeededRandom(seed), options)
}

function machineIn(scheduler: Scheduler, random: SeededRandom, options: ClockOptions): VirtualEnvironment {
  const clock = new VirtualClock(scheduler, options)
  return {
    clock,
    host: clock.host,
    random,
    scheduler,
    machine: (name, own = {}) => machineIn(scheduler, random.fork(name), { identity: name, ...own }),
    advance: (ms) => scheduler.advance(ms),
    runUntil: (work, limitMs) => scheduler.runUntil(work, limitMs),
  }
}
