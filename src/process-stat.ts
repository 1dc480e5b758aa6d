/** What `/proc/<pid>/stat` says (proc_pid_stat(5)). Nothing elsewhere than on Linux. */
import { closeSync, openSync, readSync } from 'node:fs'

export interface ProcessStat {
  readonly name: string
  readonly state: string
  readonly parent: number
  readonly group: number
  readonly session: number
  /** The device number of its controlling terminal; 0 for none. */
  readonly terminal: number
  /** The process group in the foreground of that terminal; -1 for none. */
  readonly foreground: number
  readonly threads: number
  /** When it started, in 10 ms ticks since boot: with the pid, an identity that is never reused. */
  readonly started: string
}

const EXHAUSTED = ['EMFILE', 'ENFILE', 'ENOMEM']

/** The line has some 300 bytes, and what is used of it stands in the first half. */
const buffer = Buffer.alloc(1_024)

/**
 * `null` where there is no such process, or none that we may see. A quarter of the cost of `readFileSync`.
 * @throws where nothing can be looked at now (no descriptors are left): that says nothing of the process.
 */
export function readStat(folder: string): ProcessStat | null {
  let text: string
  try {
    const descriptor = openSync(`${folder}/stat`, 'r')
    try {
      text = buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, buffer.length, 0))
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (EXHAUSTED.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return null
  }
  return parseStat(text)
}

export function parseStat(text: string): ProcessStat | null {
  // The name is in parentheses and may itself hold parentheses and spaces.
  const [open, close] = [text.indexOf('('), text.lastIndexOf(')')]
  const fields = text.slice(close + 2).split(' ', 20)
  const [state, parent, group, session, terminal, foreground] = fields
  const [threads, started] = [Number(fields[17]), fields[19]]
  if (!state || !started || !Number.isInteger(threads)) return null
  return {
    name: Buffer.from(text.slice(open + 1, close), 'latin1').toString(),
    state,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    terminal: Number(terminal),
    foreground: Number(foreground),
    threads,
    started,
  }
}

/** A zombie has ended, and only its parent has not asked yet; unless other threads still run behind the first one. */
export const hasEnded = ({ state, threads }: Pick<ProcessStat, 'state' | 'threads'>): boolean =>
  /^[ZXx]$/.test(state) && threads <= 1
