import { type HolderKind, takeOvers } from '../../test/support/redis-take-over.js'

export const summary = 'kill -9 of a Redis holder, the library and holdfast run: the next holds within ttl + 50 ms'

const TTL_MS = 2_000
const BOUND_MS = TTL_MS + 50
const KINDS: readonly HolderKind[] = ['library', 'run']

export async function run([kills = '20']: readonly string[]): Promise<void> {
  for (const kind of KINDS) {
    const found = await takeOvers(kind, Number(kills), TTL_MS)
    const gaps = found.map(({ afterKillMs }) => afterKillMs).sort((a, b) => a - b)
    // From the end of the lease on the server.
    const late = Math.max(...found.map(({ afterKillMs, leftMs }) => afterKillMs - leftMs))
    const shown = [gaps[0], gaps[gaps.length >> 1], gaps.at(-1)].map((ms) => ms?.toFixed(1)).join(' / ')
    console.log(
      `${kind.padEnd(8)} ${gaps.length} kills, TTL ${TTL_MS} ms: best / median / worst ${shown} ms after the kill (bound ${BOUND_MS}); ` +
        `at the latest ${late.toFixed(1)} ms after the lease had ended`,
    )
    const worst = gaps.at(-1) ?? Number.NaN
    if (!(worst <= BOUND_MS)) throw new Error(`${kind}: ${worst} ms is above ${BOUND_MS}`)
    const early = found.find(({ afterKillMs, leftMs }) => leftMs <= 0 || afterKillMs < leftMs)
    if (early) throw new Error(`${kind}: held after ${early.afterKillMs} ms, with ${early.leftMs} ms left`)
  }
}
