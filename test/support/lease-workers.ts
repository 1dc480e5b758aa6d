/** Starts lease workers, in namespaces of their own where asked, and hears what they tell. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const WORKER = fileURLToPath(new URL('./lease-worker.js', import.meta.url))

export interface Told {
  readonly event: 'started' | 'held' | 'lost' | 'refused' | 'now'
  /** On the host clock of the worker. */
  readonly at: number
  readonly wall: number
  readonly fence?: string
  readonly reason?: string
  readonly held?: boolean
  readonly remainingMs?: number
  readonly clock?: string | null
}

export interface WorkerOptions {
  readonly path: string
  readonly ttlMs: number
  readonly lockDelayMs?: number
  readonly once?: boolean
  /** A command that runs the worker, such as `['unshare', '--pid', '--fork', '--mount-proc']`. */
  readonly through?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export class LeaseWorker {
  readonly process: ChildProcess
  readonly told: Told[] = []
  stderr = ''
  #heard: (() => void)[] = []
  #closed = false

  constructor({ path, ttlMs, lockDelayMs = 0, once: asksOnce = false, through = [], env = {} }: WorkerOptions) {
    const args = [WORKER, path, 'key', String(ttlMs), String(lockDelayMs), asksOnce ? 'once' : 'wait']
    const [command = '', ...rest] = [...through, process.execPath, ...args]
    this.process = spawn(command, rest, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } })
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    this.process.stdin?.on('error', () => {})
    if (!this.process.stdout) throw new Error('the worker has no stdout')
    this.process.on('close', () => {
      this.#closed = true
      this.#wake()
    })
    createInterface({ input: this.process.stdout }).on('line', (line) => {
      this.told.push(JSON.parse(line) as Told)
      this.#wake()
    })
  }

  #wake(): void {
    for (const heard of this.#heard.splice(0)) heard()
  }

  /** The first of this event, told already or still to come. Rejects when the worker has ended without it. */
  async hear(event: Told['event'], from = 0): Promise<Told> {
    for (;;) {
      const found = this.told.slice(from).find((told) => told.event === event)
      if (found) return found
      if (this.#closed) {
        throw new Error(`the worker ended without ${event}; it told ${JSON.stringify(this.told)} ${this.stderr}`)
      }
      await new Promise<void>((resolve) => this.#heard.push(resolve))
    }
  }

  /** Held or refused. */
  verdict(): Promise<Told> {
    return Promise.any([this.hear('held'), this.hear('refused')])
  }

  /** What it believes now. */
  async ask(): Promise<Told> {
    const from = this.told.length
    this.process.stdin?.write('?\n')
    return this.hear('now', from)
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    this.process.kill('SIGKILL')
    await once(this.process, 'exit')
  }
}
