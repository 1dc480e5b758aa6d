import { close, constants, open, write, writeSync } from 'node:fs'
import { sleep, systemEnvironment } from '../../environment.js'
import { usageError } from '../exit.js'
import { say } from '../text/output.js'

/** How long the end of a run waits for its last lines to be written. */
const CLOSE_MS = 2_000
/** Whoever opens a FIFO that nobody reads waits for a reader, unless told not to. */
const HOW = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * A file of JSON lines, each appended by one write, so that several runs can share it. Writing never holds up a run
 * nor ends it: a disk that hangs or is full costs lines, and one message.
 */
export class Journal {
  readonly #path: string
  readonly #fd: number
  #queue: Promise<void> = Promise.resolve()
  #pending = 0
  #hasFailed = false
  #isTorn = false

  constructor(path: string, fd: number) {
    this.#path = path
    this.#fd = fd
  }

  write(facts: Readonly<Record<string, unknown>>): void {
    this.#pending++
    this.#queue = this.#queue.then(
      () =>
        new Promise((resolve) => {
          const bytes = this.#bytes(facts)
          write(this.#fd, bytes, (error, written) => {
            this.#pending--
            this.#written(error, bytes.length - (written ?? 0))
            resolve()
          })
        }),
    )
  }

  /** For the moment in which nothing but this can be done; not where a write hangs already. */
  writeNow(facts: Readonly<Record<string, unknown>>): void {
    if (this.#pending > 0) return
    try {
      writeSync(this.#fd, this.#bytes(facts))
    } catch {
      // The end of the process is told by its exit code all the same.
    }
  }

  /** Resolves when all is written, and at the latest after {@link CLOSE_MS}. */
  async close(): Promise<void> {
    const done = new AbortController()
    void this.#queue.then(() => done.abort())
    await sleep(systemEnvironment().clock, CLOSE_MS, { signal: done.signal, keepAlive: true })
    if (this.#pending > 0) this.#failed('no answer from it')
    else close(this.#fd)
  }

  /** What was cut off must not swallow the next line. */
  #bytes(facts: Readonly<Record<string, unknown>>): Buffer {
    return Buffer.from(`${this.#isTorn ? '\n' : ''}${JSON.stringify(facts)}\n`)
  }

  #written(error: NodeJS.ErrnoException | null, missing: number): void {
    if (!error) this.#isTorn = missing > 0
    if (error) this.#failed(error.code ?? error.message)
    else if (missing > 0) this.#failed(`its last ${missing} bytes did not fit`)
  }

  #failed(why: string): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    say(`could not write to --json-log ${this.#path} (${why}): lines are missing there; the run itself is not affected`)
  }
}

/** @throws CliError (exit 64) before anything is done: a log that cannot be kept was not meant. */
export async function openJournal(path: string): Promise<Journal> {
  if (path === '' || path === '-') {
    throw usageError(`--json-log must be the path of a file, but got ${JSON.stringify(path)} (stdout is the command's)`)
  }
  const fd = await new Promise<number>((resolve, reject) =>
    open(path, HOW, 0o600, (error, fd) => (error ? reject(refusal(path, error.code)) : resolve(fd))),
  )
  return new Journal(path, fd)
}

const WHY: Record<string, string> = {
  ENOENT: 'its folder does not exist; make it first',
  ENOTDIR: 'what should be its folder is a file',
  EISDIR: 'it is a folder; name a file in it',
  EACCES: 'you have no permission to write it, or to make it in its folder',
  EROFS: 'it lies on a read-only file system',
  ENXIO: 'nobody reads this FIFO; start its reader first',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its symbolic links lead nowhere',
}

const refusal = (path: string, code = 'unknown'): Error =>
  usageError(
    `--json-log must be a file that can be written, but got ${JSON.stringify(path)}: ${WHY[code] ?? `it could not be opened (${code})`}`,
  )
