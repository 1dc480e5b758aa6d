import { type Clock, sleep, turn } from '../../environment.js'
import { say } from '../text/output.js'
import { nameOf, type ProcessInfo } from './processes.js'
import { QUIET_LOOKS, type Tree } from './tree.js'

/** How often a command that was told to end is looked at, and one that was killed. */
const ENDING_LOOK_MS = 20
const KILLED_LOOK_MS = 5
/** What outlives KILL for so long (an uninterruptible call on a dead disk, or ever new processes) is named instead. */
const UNKILLABLE_MS = 5_000

export interface EndingEvents {
  /** TERM is about to be sent; KILL follows after `killInMs`. */
  terminating(killInMs: number): void
  /** KILL is about to be sent. */
  killing(): void
}

export interface Ending {
  readonly clock: Clock
  readonly tree: Tree
  readonly events: EndingEvents
  /** Somebody has sent TERM already: once is enough. */
  isTold(): boolean
  /** When KILL is due on our clock; asked again and again, since it may come nearer. */
  killAt(): number
  /** The command itself has been waited for, where that is ours to do. */
  isCommandOver(): boolean
}

/**
 * Ends a command with everything it started: TERM while there is time, then KILL. Resolves with what could be seen of
 * it to the last: nothing, if all went well.
 */
export async function endTree(ending: Ending): Promise<readonly ProcessInfo[]> {
  const { clock, tree, events } = ending
  if (clock.now() < ending.killAt()) {
    // What was read from others only now (after a pause) counts first.
    await turn()
    if (!ending.isTold()) {
      events.terminating(ending.killAt() - clock.now())
      tree.terminate()
    }
    let quiet = 0
    while (clock.now() < ending.killAt()) {
      quiet = ending.isCommandOver() && tree.look().isGone ? quiet + 1 : 0
      if (quiet === QUIET_LOOKS) return []
      const leftMs = Math.max(ending.killAt() - clock.now(), 0)
      await sleep(clock, Math.min(ENDING_LOOK_MS, leftMs), { keepAlive: true })
    }
  }
  events.killing()
  tree.kill()
  return killed(ending)
}

/** Looks after those that were killed, and kills what is found, until nobody is found twice in a row. */
async function killed({ clock, tree, isCommandOver }: Ending): Promise<readonly ProcessInfo[]> {
  const until = clock.now() + UNKILLABLE_MS
  let left: readonly ProcessInfo[] = []
  for (let quiet = 0; quiet < QUIET_LOOKS; ) {
    await sleep(clock, KILLED_LOOK_MS, { keepAlive: true })
    const { seen, isGone } = tree.look()
    if (seen.length > 0) left = seen
    if (!isGone) tree.kill()
    quiet = isCommandOver() && isGone ? quiet + 1 : 0
    // Those that keep coming back may be between two processes at this very moment: named is who was seen last.
    if (clock.now() >= until && quiet < QUIET_LOOKS) return left
  }
  return []
}

export function sayNotEnded(left: readonly ProcessInfo[]): void {
  if (left.length > 0)
    say(`could not end ${left.map(nameOf).join(', ')}, now without the lease, and perhaps more: end them by hand`)
}
