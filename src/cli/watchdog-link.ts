import type { Environment, Timer } from '../environment.js'
import type { Lease } from '../lease.js'
import { canSeeProcesses, readProcess } from './process/processes.js'
import type { Tree, TreeRoot } from './process/tree.js'
import type { Plan } from './run/plan.js'
import { Watchdog } from './watchdog.js'

/** A command that ends sooner spares the store a renewal. */
const SHARE_AFTER_MS = 20
/** How often the watchdog must answer. */
const LOOK_EVERY_MS = 1_000

/** Keeps the watchdog informed of one lease and its command, and the store of who keeps the lease alive. */
export class WatchdogLink {
  readonly #lease: Lease
  readonly #plan: Plan
  readonly #environment: Environment
  readonly #watchdog: Watchdog
  #root: TreeRoot
  /** On the clock that the host's processes share. */
  #deadline = 0
  #killAt: number | null = null
  #sharing: Timer | undefined
  #looking: Timer | undefined
  onActing: () => void = () => {}

  /** Begins before the command does: whatever carries the cookie is its business from then on. */
  constructor(lease: Lease, plan: Plan, cookie: string, cgroup: string | null, environment: Environment) {
    this.#lease = lease
    this.#plan = plan
    this.#environment = environment
    this.#root = { pid: null, started: ownStart(), cookie, ownGroup: false, cgroup }
    this.#watchdog = new Watchdog(environment.clock)
    this.#watchdog.onActing = () => this.onActing()
    this.#watchdog.onReplaced = () => this.#share()
    this.renewed()
    this.#look()
  }

  begin(tree: Tree): void {
    this.#root = tree.root
    this.#tell()
    this.#sharing = this.#environment.clock.timer(SHARE_AFTER_MS, () => this.#share())
  }

  renewed(): void {
    this.#deadline = this.#environment.host.now() + this.#lease.remainingMs
    this.#tell()
  }

  /** holdfast has begun to end the command. */
  ending(killInMs: number): void {
    this.#killAt = this.#environment.host.now() + killInMs
    this.#tell()
  }

  stop(): Promise<void> {
    this.#sharing?.cancel()
    this.#looking?.cancel()
    return this.#watchdog.stop()
  }

  /** The deadline anew, too: what is told is counted on a clock that stops in suspend. */
  #look(): void {
    this.#looking = this.#environment.clock.timer(LOOK_EVERY_MS, () => {
      if (this.#killAt === null) this.renewed()
      this.#watchdog.look()
      this.#look()
    })
  }

  #tell(): void {
    this.#watchdog.tell({
      key: this.#lease.key,
      holdfast: process.pid,
      root: this.#root,
      plan: this.#plan,
      deadline: this.#deadline,
      killAt: this.#killAt,
    })
  }

  /**
   * A store that frees the lease of the dead early must see all of us dead: the command, and everybody who would end
   * it. Where it is not told, the lease ends by time.
   */
  #share(): void {
    const { pid } = this.#root
    if (pid === null || this.#killAt !== null) return
    this.#lease.setLife({ pids: [process.pid, ...this.#watchdog.pids, pid] }).catch(() => {})
  }
}

const ownStart = (): number | null => (canSeeProcesses() ? (readProcess(process.pid)?.started ?? null) : null)
