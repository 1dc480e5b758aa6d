/**
 * What holdfast writes. Never through `process.stdout` or `process.stderr`: where these are pipes, Node makes them
 * non-blocking, for the command that shares them too, and its writes would begin to fail. And never blocking: while
 * a reader stalls (`2>&1 | less`), the deadline of a lease must still be met.
 */
import { constants, fstatSync, openSync, readFileSync, write } from 'node:fs'
import { Writable } from 'node:stream'
import { sleep, systemEnvironment } from '../../environment.js'
import { CliError, EXIT } from '../exit.js'

/**
 * Whenever a socket is destroyed, Node compares it with `process.stderr`, and so makes that: a pipe that the command shares
 * with us would no longer block. For as long as there is a command, something else stands there, which drops what it gets.
 */
export function leaveStderrAlone(): void {
  const value = Object.assign(new Writable({ write: (_chunk, _encoding, done) => done() }), { fd: 2 })
  Object.defineProperty(process, 'stderr', { value, configurable: true })
}

/**
 * For libraries that write by themselves: stderr has our lines, and stdout the data that was asked for. Whatever they
 * have to say is dropped, and not shown with HOLDFAST_DEBUG either, since it may hold a password.
 */
export function muteLibraries(): void {
  leaveStderrAlone()
  for (const name of ['log', 'info', 'debug', 'warn', 'error', 'trace'] as const) console[name] = () => {}
}

const FULL_PIPE_PAUSE_MS = 10
let queue: Promise<unknown> = Promise.resolve()

/** Escapes what could disturb a terminal or forge a line: control characters, and those that turn text around. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    const code = character.codePointAt(0) ?? 0
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}

/** One line for a person, on stderr, in order. What is updated in place makes room for it. */
export function say(message: string): void {
  const line = `holdfast: ${printable(message)}\n`
  queue = queue.then(() => {
    const text = isStatusShown ? ERASE + line : line
    isStatusShown = false
    return writeAll(2, Buffer.from(text))
  })
}

const ERASE = '\r\x1b[K'
let isStatusShown = false
let status: string | null = null
let isStatusQueued = false

/**
 * A line that is updated in place, for a terminal, already cut to its width; `null` takes it away. Where the terminal
 * stalls, only the newest is kept. {@link say} clears it, and the next update brings it back.
 */
export function showStatus(text: string | null): void {
  status = text
  if (isStatusQueued) return
  isStatusQueued = true
  queue = queue.then(() => {
    isStatusQueued = false
    if (status === null && !isStatusShown) return
    isStatusShown = status !== null
    return writeAll(2, Buffer.from(ERASE + (status ?? '')))
  })
}

/**
 * Data that was asked for, on stdout. A reader that has gone (`| head -1`) is no error: it has what it wanted. Gives
 * whether there is still one.
 * @throws CliError (exit 74) when not all of it could be written: half an answer must not pass for one.
 */
export async function print(text: string): Promise<boolean> {
  const error = await writeAll(1, Buffer.from(text))
  if (!error) return true
  if (error.code === 'EPIPE') return false
  throw new CliError(`could not write to stdout (${error.code}); the output is incomplete`, {
    exitCode: EXIT.output,
    cause: error,
  })
}

/** Text for people that is longer than a line: help. Nobody is left to hear that it failed. */
export async function printError(text: string): Promise<void> {
  await writeAll(2, Buffer.from(text))
}

/** Resolves when everything said is written, and at the latest after `withinMs`. */
export async function flushed(withinMs: number): Promise<void> {
  const done = new AbortController()
  void queue.then(() => done.abort())
  await sleep(systemEnvironment().clock, withinMs, { signal: done.signal, keepAlive: true })
}

/** Gives the error that ended the writing early, if one did. */
async function writeAll(fd: number, bytes: Buffer): Promise<NodeJS.ErrnoException | null> {
  for (let rest = bytes; rest.length > 0; ) {
    const result = await writeOnce(fd, rest)
    if (typeof result === 'number') rest = rest.subarray(result)
    else if (result.code === 'EAGAIN') await sleep(systemEnvironment().clock, FULL_PIPE_PAUSE_MS, { keepAlive: true })
    else return result
  }
  return null
}

const writeOnce = (fd: number, bytes: Buffer): Promise<number | NodeJS.ErrnoException> =>
  new Promise((resolve) => write(unblocked(fd), bytes, (error, written) => resolve(error ?? written)))

const O_ACCMODE = 3
const descriptors = new Map<number, number>()

/**
 * The same pipe or terminal by a descriptor of our own, which does not block, whatever those do that others share with
 * us: a thread that is stuck in a write keeps Node from exiting. Where that is not to be had, the shared one.
 */
function unblocked(fd: number): number {
  const known = descriptors.get(fd)
  if (known !== undefined) return known
  let own = fd
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
    const there = fstatSync(fd)
    // What was opened for reading only must fail as it is.
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    const isWritable = (Number.parseInt(flags ?? '0', 8) & O_ACCMODE) !== constants.O_RDONLY
    if (isWritable && (there.isFIFO() || there.isCharacterDevice()))
      own = openSync(`/dev/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY)
  } catch {
    // Of another user, or closed.
  }
  descriptors.set(fd, own)
  return own
}
