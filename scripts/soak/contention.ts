import { contend, type StoreKind, waitQuietly } from '../../test/support/contention.js'

export const summary =
  '[seconds] [sqlite|redis]: 8 processes x 8 waiters on one key: exclusion, fences, fairness, with kills, quiet CPU'

export async function run([seconds = '60', store = 'sqlite']: readonly string[]): Promise<void> {
  if (store !== 'sqlite' && store !== 'redis') throw new Error(`no store is named ${store}`)
  const size = { store: store as StoreKind, processes: 8, waiters: 8, seconds: Number(seconds) }
  const failures: string[] = []
  for (const killsPerSecond of [0, 2]) {
    const verdict = await contend({ ...size, killsPerSecond })
    console.log({ killsPerSecond, ...verdict })
    if (verdict.overlaps.length > 0) failures.push(`${verdict.overlaps.length} overlaps`)
    if (verdict.fencesOutOfOrder > 0) failures.push(`${verdict.fencesOutOfOrder} fences out of order`)
    if (verdict.falseLosses > 0) failures.push(`${verdict.falseLosses} false losses`)
    // On Redis a key outlives its killed holder by up to a TTL, in which nobody is served.
    const isFair = verdict.least >= 1 || (store === 'redis' && killsPerSecond > 0)
    if (!isFair) failures.push('a waiter was never served')
  }
  const everyMs = store === 'redis' ? 50 : 5
  const { waiting, polling } = await waitQuietly(size, everyMs)
  const used = `${waiting.toFixed(2)} s of CPU for 63 waiters behind one holder for ${seconds} s; polling every ${everyMs} ms ${polling.toFixed(2)} s`
  console.log(used)
  if (waiting >= polling) failures.push(used)
  if (failures.length > 0) throw new Error(failures.join('; '))
}
