/** What `/proc` says about the processes of this host. Elsewhere than on Linux there is nothing to read. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface ProcessInfo {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** When it started, in ticks since boot: with the pid, an identity that is never reused. */
  readonly started: number
  readonly name: string
  /** A zombie has ended; only its parent has not asked yet. */
  readonly alive: boolean
}

export function readProcess(pid: number): ProcessInfo | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null
  }
  // The name is in parentheses and may itself hold parentheses and spaces.
  const open = text.indexOf('(')
  const close = text.lastIndexOf(')')
  const fields = text.slice(close + 2).split(' ')
  const [state = '', parent, group, session] = fields
  const threads = Number(fields[17])
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    started: Number(fields[19]),
    name: Buffer.from(text.slice(open + 1, close), 'latin1').toString(),
    // The first thread of a process may end before the others do.
    alive: !(/[ZXx]/.test(state) && threads <= 1),
  }
}

/** Everything alive that started at `since` or later. */
export function processesSince(since: number): ProcessInfo[] {
  const found: ProcessInfo[] = []
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const info = readProcess(Number(entry))
    if (info?.alive && info.started >= since) found.push(info)
  }
  return found
}

/** Whether `NAME=value` of its environment holds `word`; false where we may not look. */
export function environmentHolds(pid: number, name: string, word: string): boolean {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
    return variables.some(
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
