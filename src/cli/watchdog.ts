/**
 * holdfast may be killed with -9, or stopped; its command must not outlive the lease even then. Two processes see to
 * that. The watchdog (`watchdog-main.ts`) knows the deadline, and does what holdfast would do when holdfast does not.
 * The sentinel is a shell that waits until both are gone, stops the command, and becomes the watchdog that is missing.
 *
 * The command waits for neither: what they have to know is in their pipes before they have started. Whoever of them dies
 * is replaced at once.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../environment.js'
import { Companion } from './companion.js'
import { canSeeProcesses, readProcess } from './process/processes.js'
import { say } from './text/output.js'
import { ACTING, encodeOrders, type WatchdogOrders } from './watchdog-orders.js'

const MAIN = fileURLToPath(new URL('./watchdog-main.js', import.meta.url))
/**
 * Remembers the last line; at the end of its input it stops the process group, whose number comes first in that line, so
 * that nothing goes on while the watchdog starts. Where none can be started (Node was replaced by a newer one, perhaps),
 * it kills the group itself. What is sent to everybody (a service manager's TERM, a hang-up)
 * is not for the sentinel.
 */
const SENTINEL = [
  "trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 PIPE ALRM",
  'last=',
  'while IFS= read -r line; do last=$line; case $line in -*) exit 0 ;; esac; done',
  'group=${last%% *}',
  'case $group in "") exit 0 ;; 0) ;; *) kill -s STOP -- "-$group" 2>/dev/null ;; esac',
  '"$0" "$1" "$last" && exit 0',
  'case $group in 0) ;; *) kill -s KILL -- "-$group" ;; esac',
].join('\n')

/** A watchdog that has not answered for so long is stopped, or busy beyond all measure: another takes its place. */
const PATIENCE_MS = 3_000

export class Watchdog {
  readonly #sentinel: Companion
  readonly #watchdog: Companion
  readonly #clock: Clock
  #unansweredSince: number | null = null
  #hasActed = false
  #hasFailed = false
  /** The watchdog has begun to end the command, because holdfast did not. */
  onActing: () => void = () => {}
  /** {@link pids} has changed. */
  onReplaced: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
    const said = (line: string) => this.#said(line)
    const failed = (error: NodeJS.ErrnoException) => this.#failed(error)
    // A watchdog holds the pipe of the sentinel that was there when it began.
    const renewed = () => {
      if (this.#sentinel.pid !== undefined) this.#watchdog.replace()
    }
    this.#sentinel = new Companion(() => this.#spawnSentinel(), clock, { said, failed, replaced: renewed })
    this.#watchdog = new Companion(() => this.#spawnWatchdog(), clock, {
      said,
      failed,
      replaced: () => this.onReplaced(),
    })
  }

  tell(orders: WatchdogOrders): void {
    const line = encodeOrders(orders)
    this.#sentinel.tell(line)
    this.#watchdog.tell(line)
    this.#unansweredSince ??= this.#clock.now()
  }

  /** Looks after both: who is stopped does not do its work, and does not die of that. */
  look(): void {
    const now = this.#clock.now()
    const { pid } = this.#sentinel
    if (pid !== undefined && canSeeProcesses() && readProcess(pid)?.state === 'T') this.#sentinel.replace()
    else if (this.#unansweredSince !== null && now - this.#unansweredSince >= PATIENCE_MS) {
      this.#unansweredSince = now
      this.#watchdog.replace()
    }
  }

  get hasActed(): boolean {
    return this.#hasActed
  }

  /** Of those that are there now: the lease lives as long as any of them, or the command. */
  get pids(): readonly number[] {
    return [this.#sentinel.pid, this.#watchdog.pid].filter((pid) => pid !== undefined)
  }

  /** Nothing is left to watch. The sentinel first, which would act on the death of the other. */
  async stop(): Promise<void> {
    const sentinelGone = this.#sentinel.stop()
    await this.#watchdog.stop()
    await sentinelGone
  }

  #said(line: string): void {
    this.#unansweredSince = null
    if (line !== ACTING || this.#hasActed) return
    this.#hasActed = true
    this.#sentinel.leave()
    this.#watchdog.leave()
    this.onActing()
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (!this.#hasFailed)
      say(`could not start a process that ends the command if holdfast is killed (${error.code}); trying again`)
    this.#hasFailed = true
  }

  // A session of their own: Ctrl-Z, Ctrl-C and the end of a terminal are none of their business.
  #spawnSentinel() {
    const args = ['-c', SENTINEL, process.execPath, MAIN]
    return spawn('/bin/sh', args, { ...common(), stdio: ['pipe', 'ignore', 'inherit'] })
  }

  #spawnWatchdog() {
    const { pipe } = this.#sentinel
    return spawn(process.execPath, [MAIN], { ...common(), stdio: ['pipe', 'pipe', 'inherit', pipe ?? 'ignore'] })
  }
}

/** Not the folder, which may be unmounted, nor what Node reads at its start: it is meant for somebody else. */
function common() {
  const { NODE_OPTIONS, NODE_V8_COVERAGE, NODE_EXTRA_CA_CERTS, ...env } = process.env
  return { cwd: '/', detached: true, env }
}
