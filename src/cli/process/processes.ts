/** What `/proc` says about the processes of this host. Elsewhere than on Linux there is nothing to read. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { hasEnded, type ProcessStat, readStat } from '../../process-stat.js'

export interface ProcessInfo extends Omit<ProcessStat, 'started'> {
  readonly pid: number
  /** In ticks since boot. */
  readonly started: number
  readonly alive: boolean
}

/** For people. */
export const nameOf = ({ name, pid }: ProcessInfo): string => `${name} (pid ${pid})`

export function readProcess(pid: number): ProcessInfo | null {
  const stat = readStat(`/proc/${pid}`)
  return stat && { ...stat, pid, started: Number(stat.started), alive: !hasEnded(stat) }
}

/** Numbers are given out in sequence; after so many turns of catching up with them, a scan ends all the same. */
const CHASES = 100

/**
 * Everything alive that started at `since` or later, each shown to `found` as soon as it is seen. Who starts a child
 * and ends before it is looked at would hide the child from a mere list: so the numbers that were given out during
 * the scan are looked at too, until no more have been. The child's number is always the later one.
 */
export function processesSince(since: number, found: (each: ProcessInfo) => void = () => {}): ProcessInfo[] {
  const seen = new Map<number, ProcessInfo>()
  const look = (pid: number) => {
    const info = readProcess(pid)
    if (!info?.alive || info.started < since) return
    seen.set(pid, info)
    found(info)
  }
  let upTo = lastNumber()
  for (const entry of readdirSync('/proc')) if (/^\d+$/.test(entry)) look(Number(entry))
  for (let chase = 0; upTo !== null && chase < CHASES; chase++) {
    const last = lastNumber()
    if (last === null || last === upTo) break
    // Fewer than before: the numbers have begun anew.
    for (let pid = last < upTo ? 1 : upTo + 1; pid <= last; pid++) if (!seen.has(pid)) look(pid)
    upTo = last
  }
  return [...seen.values()]
}

/** The number that was given last to a process or thread of our pid namespace. */
function lastNumber(): number | null {
  try {
    const last = Number(readFileSync('/proc/loadavg', 'latin1').trim().split(' ')[4])
    return Number.isInteger(last) && last > 0 ? last : null
  } catch {
    return null
  }
}

/** A process that is just being replaced (exec) shows no environment for a moment, up to a few tenths of a millisecond. */
const EXEC_LOOKS = 20

/** Whether `NAME=value` of its environment holds `word`; false where we may not look. */
export function environmentHolds(pid: number, name: string, word: string): boolean {
  try {
    let text = ''
    for (let look = 0; text === '' && look < EXEC_LOOKS; look++) text = readFileSync(`/proc/${pid}/environ`, 'latin1')
    return text.split('\0').some(
      (each) =>
        each.startsWith(`${name}=`) &&
        each
          .slice(name.length + 1)
          .split(' ')
          .includes(word),
    )
  } catch {
    return false
  }
}

/** `/proc` may be absent, or show another pid namespace than ours. */
export function canSeeProcesses(): boolean {
  try {
    return readlinkSync('/proc/self') === String(process.pid)
  } catch {
    return false
  }
}
