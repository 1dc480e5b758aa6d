/** Runs the built command in real processes, each test in a folder of its own. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'

export const MAIN = fileURLToPath(new URL('../../bundle/cli/main.js', import.meta.url))

export interface Result {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly ms: number
}

export interface Running {
  readonly process: ChildProcess
  readonly pid: number
  stdout(): string
  stderr(): string
  /** Its own end and that of everybody who holds its stdout or stderr. */
  readonly ended: Promise<Result>
  /** Its own end. */
  readonly exited: Promise<number | null>
  /** Waits until stdout or stderr matches. */
  saw(pattern: RegExp): Promise<RegExpExecArray>
}

export interface Options {
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string
  readonly cwd?: string
  /** Left open instead of ended. */
  readonly stdin?: 'open'
}

export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  readonly db = join(this.folder, 'holdfast/leases.db')
  readonly #pids = new Set<number>()

  env(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    const { PATH } = process.env
    return { PATH, HOME: this.folder, XDG_STATE_HOME: this.folder, ...more }
  }

  start(args: readonly string[], options: Options = {}): Running {
    return this.spawn(process.execPath, [MAIN, ...args], options)
  }

  run(args: readonly string[], options: Options = {}): Promise<Result> {
    return this.start(args, options).ended
  }

  spawn(file: string, args: readonly string[], options: Options = {}, more: SpawnOptions = {}): Running {
    const began = performance.now()
    const { env, cwd = this.folder } = options
    const child = spawn(file, args, { cwd, env: this.env(env), stdio: ['pipe', 'pipe', 'pipe'], ...more })
    this.mind(child.pid ?? 0)
    let stdout = ''
    let stderr = ''
    const waiting = new Set<() => void>()
    const look = () => {
      for (const each of waiting) each()
    }
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      for (const [, pid] of text.matchAll(/^pid (\d+)$/gm)) this.mind(Number(pid))
      look()
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      look()
    })
    child.stdin?.on('error', () => {})
    if (options.stdin !== 'open') child.stdin?.end(options.input ?? '')
    const ended = new Promise<Result>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr, ms: performance.now() - began }))
    })
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
    const saw = (pattern: RegExp) =>
      new Promise<RegExpExecArray>((resolve, reject) => {
        const check = () => {
          const match = pattern.exec(stdout) ?? pattern.exec(stderr)
          if (!match) return
          waiting.delete(check)
          resolve(match)
        }
        waiting.add(check)
        check()
        void ended.then(() => {
          check()
          if (waiting.has(check)) reject(new Error(`ended without ${pattern}\nstdout: ${stdout}\nstderr: ${stderr}`))
        })
      })
    return { process: child, pid: child.pid ?? 0, stdout: () => stdout, stderr: () => stderr, ended, exited, saw }
  }

  /** Ended by `end()` if it is still there. */
  mind(pid: number): void {
    if (pid > 0) this.#pids.add(pid)
  }

  sql(statement: string, path = this.db): void {
    const database = new Database(path)
    database.exec(statement)
    database.close()
  }

  /** No renewal gets through, nor anything else, until the function that it gives is called. */
  lockFile(): () => void {
    const database = new Database(this.db)
    database.exec('BEGIN IMMEDIATE')
    return () => {
      database.exec('ROLLBACK')
      database.close()
    }
  }

  end(): void {
    for (const pid of this.#pids) {
      if (!isOurs(pid, this.folder)) continue
      for (const signal of ['SIGKILL', 'SIGCONT'] as const) {
        try {
          process.kill(pid, signal)
        } catch {
          // Gone already.
        }
      }
    }
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The numbers of processes are used again: only what was started in our folder's home is ours. */
function isOurs(pid: number, folder: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`HOME=${folder}`)
  } catch {
    return false
  }
}

/** A bench that is cleaned up after the tests of the file. */
export function bench(): Bench {
  const made = new Bench()
  after(() => made.end())
  return made
}

export function alive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

export const pidsIn = (text: string): number[] => [...text.matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid))

export async function eventually(what: string, check: () => boolean, withinMs = 5_000): Promise<void> {
  const until = performance.now() + withinMs
  while (!check()) {
    if (performance.now() > until) throw new Error(`not within ${withinMs} ms: ${what}`)
    await delay(10)
  }
}

/** Milliseconds since 1970 of the last line that a `ticker` wrote. */
export const lastTick = (file: string): number =>
  existsSync(file) ? Number(readFileSync(file, 'utf8').trim().split('\n').at(-1)) : Number.NaN

/** Shell text that writes the time to a file, every 10 ms or so, until it is killed; it ignores TERM. */
export const ticker = (file: string): string =>
  `trap '' TERM; echo pid $$; while :; do echo $(($(date +%s%N) / 1000000)) >> ${file}; sleep 0.01; done`

/** Shell text: a command with a child, a grandchild in a session of its own, and one whose parent has ended as well. */
export const FAMILY = [
  'echo pid $$',
  'sleep 300 & echo pid $!',
  "setsid sh -c 'echo pid $$; exec sleep 300' &",
  "(setsid sh -c 'echo pid $$; exec sleep 300' &)",
  'wait',
].join('\n')

/** One line, of ours, without a stack. */
export const ONE_LINE = /^holdfast: [^\n]+\n$/
