import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { exitOfSignal } from '../exit.js'
import { controllingTerminal } from './terminal.js'

/** The last thing before the end of holdfast. */
export function leaveTerminal(exitCode: number): void {
  const terminal = controllingTerminal()
  if (!terminal) return
  if (!terminal.isForeground()) return keepModes()
  if (exitCode === exitOfSignal(constants.signals.SIGINT)) endByCtrlC()
}

/**
 * At its exit, Node sets the modes of a terminal back to what they were at its start. That is right after a command that
 * was killed in raw mode; but a job in the background would disturb whoever is in front. Node leaves out what is closed.
 */
function keepModes(): void {
  for (const fd of [0, 1, 2]) if (isatty(fd)) closeSync(fd)
}

/** A shell goes on with its loop after a command that exited with 130, and leaves it after one that died of SIGINT. */
function endByCtrlC(): void {
  process.removeAllListeners('SIGINT')
  process.kill(process.pid, 'SIGINT')
}
