import { CONTESTANTS, type Id } from '../contestants/index.js'
import { type Median, medianOf } from './median.js'
import { figure } from './table.js'

export type Results<T> = ReadonlyMap<Id, readonly T[]>

/**
 * Every contestant once in each round, each round beginning with another one and every second one running backwards:
 * what disturbs the machine for a while disturbs all.
 */
export async function inRounds<T>(
  rounds: number,
  ids: readonly Id[],
  what: string,
  measure: (id: Id) => Promise<T>,
): Promise<Results<T>> {
  const results = new Map(ids.map((id) => [id, [] as T[]]))
  for (let round = 0; round < rounds; round++) {
    console.error(`${what}: round ${round + 1} of ${rounds}`)
    const start = round % ids.length
    const order = [...ids.slice(start), ...ids.slice(0, start)]
    if (round % 2) order.reverse()
    for (const id of order) results.get(id)?.push(await measure(id))
  }
  return results
}

export const nameOf = (id: Id): string => CONTESTANTS[id].name

/** The median of all rounds. */
export const middle = <T>(values: readonly T[], of: (value: T) => number): number => medianOf(values.map(of)).median

/** `0.83 (0.79 to 0.90)`: how many times as much as raw ioredis in the same round; the median of all rounds, and its interval. */
export function timesRaw<T>(results: Results<T>, id: Id, of: (value: T) => number): string {
  const raw = results.get('raw')
  if (!raw) return '-'
  const times = (results.get(id) ?? []).map((value, round) => of(value) / of(raw[round] as T))
  return id === 'raw' ? figure(1) : interval(medianOf(times))
}

export function interval({ median, low, high }: Median): string {
  const middle = median.toFixed(2)
  return low === high ? middle : `${middle} (${low.toFixed(2)} to ${high.toFixed(2)})`
}
