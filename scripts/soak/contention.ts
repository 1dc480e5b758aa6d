import { contend, waitQuietly } from '../../test/support/contention.js'

export const summary = '8 processes x 8 waiters on one SQLite key: exclusion, fences, fairness, with kills, quiet CPU'

export async function run([seconds = '60']: readonly string[]): Promise<void> {
  const size = { processes: 8, waiters: 8, seconds: Number(seconds) }
  const failures: string[] = []
  for (const killsPerSecond of [0, 2]) {
    const verdict = await contend({ ...size, killsPerSecond })
    console.log({ killsPerSecond, ...verdict })
    if (verdict.overlaps.length > 0) failures.push(`${verdict.overlaps.length} overlaps`)
    if (verdict.fencesOutOfOrder > 0) failures.push(`${verdict.fencesOutOfOrder} fences out of order`)
    if (verdict.falseLosses > 0) failures.push(`${verdict.falseLosses} false losses`)
    if (verdict.least < 1) failures.push('a waiter was never served')
  }
  const cpu = await waitQuietly(size)
  console.log(`63 waiters behind one holder for ${seconds} s: ${cpu.toFixed(2)} s of CPU`)
  if (cpu >= Number(seconds) / 10) failures.push(`${cpu} s of CPU while waiting quietly`)
  if (failures.length > 0) throw new Error(failures.join('; '))
}
