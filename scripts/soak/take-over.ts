import { type HolderKind, takeOvers } from '../../test/support/take-over.js'

export const summary = 'kill -9 of a SQLite holder: visible, in a pid namespace of its own, and of holdfast run'

const TTL_MS = 2000
const BOUNDS: Record<HolderKind, number> = { visible: 100, hidden: TTL_MS + 250, run: 1_000 }

export async function run([kills = '20']: readonly string[]): Promise<void> {
  for (const [kind, bound] of Object.entries(BOUNDS) as [HolderKind, number][]) {
    const gaps = (await takeOvers(kind, Number(kills), TTL_MS)).sort((a, b) => a - b)
    const [best = 0, middle = 0, worst = 0] = [gaps[0], gaps[gaps.length >> 1], gaps.at(-1)]
    const shown = [best, middle, worst].map((ms) => ms.toFixed(1)).join(' / ')
    console.log(
      `${kind.padEnd(8)} ${gaps.length} kills, TTL ${TTL_MS} ms: best / median / worst ${shown} ms (bound ${bound})`,
    )
    if (worst > bound) throw new Error(`${kind}: ${worst} ms is above ${bound}`)
    // Nothing but a visible death may free it early: the last renewal is at most a third of the TTL old.
    if (kind === 'hidden' && best < TTL_MS / 2) throw new Error(`${kind}: freed after ${best} ms`)
  }
}
