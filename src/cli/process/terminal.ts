import { isatty } from 'node:tty'
import { canSeeProcesses, readProcess } from './processes.js'

export interface ControllingTerminal {
  /** What is typed there is sent to us: our process group is the one in the foreground. */
  isForeground(): boolean
  /** The kernel tells a hang-up to us alone. */
  readonly weLeadSession: boolean
}

/**
 * The terminal that Ctrl-C comes from, and that `/dev/tty` is, whatever stdin is: `null` when there is none. Where
 * `/proc` cannot tell, a terminal at stdin stands for it.
 */
export function controllingTerminal(): ControllingTerminal | null {
  const own = canSeeProcesses() ? readProcess(process.pid) : null
  // Not `process.stdin`: only to look at it would change how a pipe reads, for the command too.
  if (!own) return isatty(0) ? { isForeground: () => true, weLeadSession: false } : null
  if (own.terminal === 0) return null
  const isForeground = () => readProcess(process.pid)?.foreground === own.group
  return { isForeground, weLeadSession: own.session === process.pid }
}
