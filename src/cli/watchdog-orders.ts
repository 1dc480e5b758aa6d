import type { TreeRoot } from './process/tree.js'
import type { Plan } from './run/plan.js'

/**
 * All that a watchdog must know, sent whole each time something has changed: whoever reads the last line knows
 * everything, and a new watchdog needs no more than that.
 */
export interface WatchdogOrders {
  readonly key: string
  /** The pid of holdfast. */
  readonly holdfast: number
  readonly root: TreeRoot
  readonly plan: Plan
  /** On the clock that all processes of the host share. */
  readonly deadline: number
  /** holdfast ends the command itself, and all of it is to be dead by then; `null` as long as it does not. */
  readonly killAt: number | null
}

/** Written to holdfast before the watchdog does anything to the command. */
export const ACTING = 'acting'
/** Where the sentinel's pipe is in the watchdog: as long as holdfast or the watchdog holds it, the sentinel waits. */
export const SENTINEL_PIPE = 3
/** Written there by a watchdog that leaves nothing to do. */
export const SENTINEL_DONE = '- done\n'

/** The process group comes first, in plain digits, for a reader who understands no JSON; 0 where there is none. */
export function encodeOrders(orders: WatchdogOrders): string {
  const { pid, ownGroup } = orders.root
  return `${ownGroup && pid !== null ? pid : 0} ${JSON.stringify(orders)}\n`
}

export const decodeOrders = (line: string): WatchdogOrders => JSON.parse(line.slice(line.indexOf(' ') + 1))
