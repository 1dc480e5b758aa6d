import { closeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { controllingTerminal } from './terminal.js'

/**
 * At its exit, Node sets the modes of a terminal back to what they were at its start. That is right after a command that
 * was killed in raw mode; but a job in the background would disturb whoever is in front. Node leaves out what is closed.
 */
export function leaveTerminal(): void {
  if (controllingTerminal()?.isForeground() ?? true) return
  for (const fd of [0, 1, 2]) if (isatty(fd)) closeSync(fd)
}
