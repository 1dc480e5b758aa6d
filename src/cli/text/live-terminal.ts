/** A terminal at stderr, for a line that is updated in place. Asked through descriptors of our own: the command shares fd 2. */
import { closeSync, constants, openSync } from 'node:fs'
import { isatty, WriteStream } from 'node:tty'

/** Where nothing tells the width. */
const USUAL_WIDTH = 80

/** Whether a line that is updated in place is welcome. In CI a terminal is often only pretended, for colours. */
export function isLive(env: NodeJS.ProcessEnv): boolean {
  const { TERM = '', CI = '' } = env
  return isatty(2) && TERM !== '' && TERM !== 'dumb' && ['', '0', 'false'].includes(CI.toLowerCase())
}

/** Columns, asked anew each time: windows change. Node's own stream would set the terminal to non-blocking. */
export function terminalWidth(): number {
  let fd: number
  try {
    fd = openSync('/dev/fd/2', constants.O_WRONLY | constants.O_NOCTTY | constants.O_NONBLOCK)
  } catch {
    return USUAL_WIDTH
  }
  try {
    const stream = new WriteStream(fd)
    const { columns } = stream
    stream.destroy()
    return columns > 0 ? columns : USUAL_WIDTH
  } catch {
    closeSync(fd)
    return USUAL_WIDTH
  }
}

/** Cut to one line of the terminal. Beyond ASCII a character may take two columns, so it is counted as two. */
export function fitted(text: string, width: number): string {
  const room = width - 1
  let used = 0
  let cut = ''
  for (const character of text) {
    used += columnsOf(character)
    if (used > room) return `${cut}…`
    if (used <= room - 2) cut += character
  }
  return text
}

const columnsOf = (character: string): number => ((character.codePointAt(0) ?? 0) < 0x80 ? 1 : 2)
