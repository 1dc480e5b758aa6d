import { canSeeProcesses, environmentHolds, type ProcessInfo, processesSince, readProcess } from './processes.js'

/** The variable that marks everything below a command, wherever in the process tree it went. */
export const COOKIE = 'HOLDFAST_TREE'

/** Looks in a row that must find nobody new before what was found counts as all that can be found. */
export const QUIET_LOOKS = 2
/** Stopping is given up for killing after so many looks: who multiplies faster than it is stopped is killed in waves. */
const STOP_LOOKS = 20

/**
 * A command and everything it started: its process group and session (where it has its own), the descendants of these,
 * and whatever carries our cookie in its environment. Not found is who has left all of them: a process in a session of
 * its own, whose parent has ended, with its environment emptied; or one of another user that hides its environment.
 */
export class Tree {
  readonly pid: number
  readonly #ownGroup: boolean
  readonly #cookie: string
  /** `null` where `/proc` cannot tell; then only the process group is reached. */
  readonly #root: ProcessInfo | null
  /** Who was found once stays found, even when its parent is gone: pid to start. */
  readonly #known = new Map<number, number>()
  #groupIsOurs: boolean

  constructor(pid: number, options: { readonly ownGroup: boolean; readonly cookie: string }) {
    this.pid = pid
    this.#ownGroup = options.ownGroup
    this.#groupIsOurs = options.ownGroup
    this.#cookie = options.cookie
    this.#root = canSeeProcesses() ? readProcess(pid) : null
  }

  /** Everything that is alive now. `found` is called with each, as soon as it is seen to be a member. */
  members(found: (each: ProcessInfo) => void = () => {}): ProcessInfo[] {
    const root = this.#root
    if (!root) return []
    const members = new Map<number, ProcessInfo>()
    const add = (each: ProcessInfo) => {
      members.set(each.pid, each)
      this.#known.set(each.pid, each.started)
      found(each)
    }
    const candidates = processesSince(root.started, (each) => {
      if (each.pid !== process.pid && (members.has(each.parent) || this.#belongs(each, root))) add(each)
    })
    for (let grew = true; grew; ) {
      grew = false
      for (const each of candidates) {
        if (each.pid === process.pid || members.has(each.pid) || !members.has(each.parent)) continue
        add(each)
        grew = true
      }
    }
    return [...members.values()]
  }

  #belongs(each: ProcessInfo, root: ProcessInfo): boolean {
    if (this.#known.get(each.pid) === each.started) return true
    if (each.pid === root.pid) return each.started === root.started
    if (this.#ownGroup && (each.group === root.pid || each.session === root.pid)) return true
    return environmentHolds(each.pid, COOKIE, this.#cookie)
  }

  /** A signal for the whole command: its group, or, where it shares ours because of the terminal, each one by itself. */
  signal(signal: NodeJS.Signals): void {
    if (this.#ownGroup) this.#signalGroup(signal)
    else if (this.#root) for (const member of this.members()) send(member, signal)
    else this.signalCommand(signal)
  }

  /** A signal for the command alone. */
  signalCommand(signal: NodeJS.Signals): void {
    const now = this.#root ? readProcess(this.pid) : null
    if (this.#root && now?.started !== this.#root.started) return
    tryKill(this.pid, signal)
  }

  /** TERM for every member, those that left the group too; whoever is stopped must run to hear it. */
  terminate(): void {
    for (const signal of ['SIGTERM', 'SIGCONT'] as const) {
      if (!this.#root) this.signal(signal)
      else for (const member of this.members()) send(member, signal)
    }
  }

  /**
   * Kills everything that can be found now. All of it is stopped first, each as soon as it is seen, until nobody new
   * has been found twice in a row: who is stopped starts nothing, and its children keep it as their parent, so nobody
   * can slip away between two looks. Whoever calls this looks again afterwards, until nobody is left.
   */
  kill(): void {
    const stopped = new Map<string, ProcessInfo>()
    let quiet = 0
    for (let look = 0; look < STOP_LOOKS && quiet < QUIET_LOOKS; look++) {
      const before = stopped.size
      if (this.#ownGroup) this.#signalGroup('SIGSTOP')
      this.members((each) => {
        send(each, 'SIGSTOP')
        stopped.set(`${each.pid} ${each.started}`, each)
      })
      quiet = stopped.size === before ? quiet + 1 : 0
    }
    if (this.#ownGroup) this.#signalGroup('SIGKILL')
    else if (!this.#root) this.signalCommand('SIGKILL')
    for (const each of stopped.values()) send(each, 'SIGKILL')
  }

  /** The command itself has been waited for: the number of an empty group may be given to somebody else. */
  commandEnded(): void {
    if (this.#root && !this.members().some((each) => each.group === this.pid)) this.#groupIsOurs = false
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#groupIsOurs) tryKill(-this.pid, signal)
  }
}

/** The pid may have been given to another process since it was found. */
function send({ pid, started }: ProcessInfo, signal: NodeJS.Signals): void {
  if (readProcess(pid)?.started === started) tryKill(pid, signal)
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Gone already, or somebody else's: who is still there is named at the end.
  }
}
