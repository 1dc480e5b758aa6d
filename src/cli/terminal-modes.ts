import { closeSync, readFileSync } from 'node:fs'
import { isatty } from 'node:tty'

/**
 * At its exit, Node sets the modes of a terminal back to what they were at its start. That is right after a command that
 * was killed in raw mode; but a job in the background would disturb whoever is in front. Node leaves out what is closed.
 */
export function leaveTerminal(): void {
  if (isInFront()) return
  for (const fd of [0, 1, 2]) if (isatty(fd)) closeSync(fd)
}

/** Where `/proc` cannot tell, Node has its way. */
function isInFront(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const [, , group, , , inFront] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return group === inFront
  } catch {
    return true
  }
}
