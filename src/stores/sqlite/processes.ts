/** Looks at processes through `kill` and `/proc`; what it sees is judged in `life.ts`. */
import { readFileSync, readlinkSync } from 'node:fs'
import { readStat } from '../../process-stat.js'
import type { Life } from '../../store.js'
import { isPid, type ProcessView, type RecordedLife, type Viewpoint } from './life.js'

/**
 * From where this process sees others; `null` when its numbers cannot be trusted: no Linux, or a `/proc` that shows
 * another pid namespace than the one in which we `kill` (`unshare --pid` without mounting it anew).
 */
export function viewpoint(host: string | null): Viewpoint | null {
  if (host === null || process.platform !== 'linux') return null
  try {
    if (Number.parseInt(readFileSync('/proc/self/stat', 'latin1'), 10) !== process.pid) return null
    // One number for each pid namespace from that of /proc down to ours.
    const numbers = /^NSpid:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
    if (numbers !== undefined && numbers !== String(process.pid)) return null
    return { host, pidNamespace: readlinkSync('/proc/self/ns/pid') }
  } catch {
    return null
  }
}

/** Only whether there is any process of this number: one system call. */
export function glanceAt(pid: number): 'gone' | 'hidden' {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 'gone'
  }
  return 'hidden'
}

export function lookAt(pid: number): ProcessView {
  if (glanceAt(pid) === 'gone') return 'gone'
  // Unreadable is not dead: with hidepid the folder of another user's process is missing.
  try {
    return readStat(`/proc/${pid}`) ?? 'hidden'
  } catch {
    return 'hidden'
  }
}

/** `null` when one of them cannot be told from a later process with its number: such a lease ends by time. */
export function recordLife(life: Life, from: Viewpoint | null): RecordedLife | null {
  if (life === 'outlives-process' || !from || life.pids.length === 0) return null
  const processes: { pid: number; started: string }[] = []
  for (const pid of life.pids) {
    const view = isPid(pid) ? lookAt(pid) : 'hidden'
    if (view === 'gone' || view === 'hidden') return null
    processes.push({ pid, started: view.started })
  }
  return { ...from, processes }
}
