import { killGroup, pidsIn } from './cgroup.js'
import { environmentHolds, type ProcessInfo, processesSince, readProcess } from './processes.js'

/** The variable that marks everything below a command, wherever in the process tree it went. */
export const COOKIE = 'HOLDFAST_TREE'

/** Looks in a row that must find nobody new before what was found counts as all that can be found. */
export const QUIET_LOOKS = 2
/** Stopping is given up for killing after so many looks: who multiplies faster than it is stopped is killed in waves. */
const STOP_LOOKS = 20

/** How a command is known, here and to the watchdog. */
export interface TreeRoot {
  /** `null` when only the cookie is known: the command may be about to start. */
  readonly pid: number | null
  /** When it started, in ticks since boot; `null` where `/proc` cannot tell: then only the process group is reached. */
  readonly started: number | null
  readonly cookie: string
  readonly ownGroup: boolean
  /** The folder of its control group, where it was given one. */
  readonly cgroup: string | null
}

/**
 * A command and everything it started: its process group and session (where it has its own), the descendants of these,
 * and whatever carries our cookie in its environment; and its control group, if it has one. Without one, not found is
 * who has left all of them before anybody looked: a process in a session of its own, whose parent has ended, with its
 * environment emptied; or one of another user that hides its environment.
 */
export class Tree {
  readonly root: TreeRoot
  /** Who was found once stays found, even when its parent is gone: pid to start. */
  readonly #known = new Map<number, number>()
  #groupIsOurs: boolean
  #isEmpty = false

  constructor(root: TreeRoot) {
    this.root = root
    this.#groupIsOurs = root.ownGroup && root.pid !== null
  }

  /** Everything that is seen alive now. `found` is called with each, as soon as it is seen to be a member. */
  members(found: (each: ProcessInfo) => void = () => {}): ProcessInfo[] {
    return this.#look(found) ?? []
  }

  /** What is seen alive now, and whether that is all: where nobody can look, nobody who answers must be left. */
  look(): { readonly seen: readonly ProcessInfo[]; readonly isGone: boolean } {
    const seen = this.#look(() => {})
    return { seen: seen ?? [], isGone: seen ? seen.length === 0 : !this.#isSeen && !this.#answers() }
  }

  /** `null` where that cannot be seen: no `/proc`, or no descriptor left to read it with. */
  #look(found: (each: ProcessInfo) => void): ProcessInfo[] | null {
    const { started } = this.root
    if (started === null) return null
    try {
      return this.#scan(started, found)
    } catch {
      return null
    }
  }

  #scan(started: number, found: (each: ProcessInfo) => void): ProcessInfo[] {
    const members = new Map<number, ProcessInfo>()
    const add = (each: ProcessInfo) => {
      members.set(each.pid, each)
      this.#known.set(each.pid, each.started)
      found(each)
    }
    const grouped = new Set(this.root.cgroup === null ? [] : pidsIn(this.root.cgroup))
    const candidates = processesSince(started, (each) => {
      if (each.pid === process.pid) return
      if (grouped.has(each.pid) || members.has(each.parent) || this.#belongs(each)) add(each)
    })
    for (let grew = true; grew; ) {
      grew = false
      for (const each of candidates) {
        if (each.pid === process.pid || members.has(each.pid) || !members.has(each.parent)) continue
        add(each)
        grew = true
      }
    }
    const alive = new Set(candidates.map(({ pid }) => pid))
    for (const pid of this.#known.keys()) if (!alive.has(pid)) this.#known.delete(pid)
    return [...members.values()]
  }

  #belongs(each: ProcessInfo): boolean {
    const { pid, started, cookie } = this.root
    if (this.#known.get(each.pid) === each.started) return true
    if (each.pid === pid) return each.started === started
    if (this.#groupIsOurs && (each.group === pid || each.session === pid)) return true
    return environmentHolds(each.pid, COOKIE, cookie)
  }

  /** A signal for the whole command: its group, or, where it shares ours because of the terminal, each one by itself. */
  signal(signal: NodeJS.Signals): void {
    if (this.root.ownGroup) this.#signalGroup(signal)
    else if (this.#isSeen) for (const member of this.members()) send(member, signal)
    else this.signalCommand(signal)
  }

  /** A signal for the command alone. */
  signalCommand(signal: NodeJS.Signals): void {
    const { pid, started } = this.root
    if (pid !== null && (started === null || isStill(pid, started))) tryKill(pid, signal)
  }

  /** TERM for every member, those that left the group too; whoever is stopped must run to hear it. */
  terminate(): void {
    const members = this.members()
    for (const signal of ['SIGTERM', 'SIGCONT'] as const) {
      if (!this.#isSeen) this.signal(signal)
      else for (const member of members) send(member, signal)
    }
  }

  /**
   * Kills everything that can be found now. All of it is stopped first, each as soon as it is seen, until nobody new
   * has been found twice in a row: who is stopped starts nothing, and its children keep it as their parent, so nobody
   * can slip away between two looks. Whoever calls this looks again afterwards, until nobody is left.
   */
  kill(): void {
    if (this.root.cgroup !== null) killGroup(this.root.cgroup)
    const stopped = new Map<string, ProcessInfo>()
    if (this.root.ownGroup) this.#signalGroup('SIGSTOP')
    // Whoever is known already need not be found first.
    for (const [pid, started] of this.#known) send({ pid, started }, 'SIGSTOP')
    let quiet = 0
    for (let look = 0; look < STOP_LOOKS && quiet < QUIET_LOOKS; look++) {
      const before = stopped.size
      if (this.root.ownGroup) this.#signalGroup('SIGSTOP')
      this.members((each) => {
        send(each, 'SIGSTOP')
        stopped.set(`${each.pid} ${each.started}`, each)
      })
      quiet = stopped.size === before ? quiet + 1 : 0
    }
    if (this.root.ownGroup) this.#signalGroup('SIGKILL')
    else if (!this.#isSeen) this.signalCommand('SIGKILL')
    for (const each of stopped.values()) send(each, 'SIGKILL')
    for (const [pid, started] of this.#known) send({ pid, started }, 'SIGKILL')
  }

  /** The command itself has been waited for: the number of an empty group may be given to somebody else. */
  commandEnded(): void {
    const left = this.#look(() => {})
    if (!left) return
    this.#isEmpty = left.length === 0
    const { pid } = this.root
    if (!left.some((each) => each.group === pid || each.session === pid)) this.#groupIsOurs = false
  }

  /** What a command that has ended has left behind and is still there: where there was nothing, nothing came since. */
  leftBehind(): readonly ProcessInfo[] {
    return this.#isEmpty ? [] : this.members()
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#groupIsOurs && this.root.pid !== null) tryKill(-this.root.pid, signal)
  }

  /** A zombie answers, too. */
  #answers(): boolean {
    const { pid, ownGroup } = this.root
    try {
      if (pid !== null) process.kill(ownGroup ? -pid : pid, 0)
      return pid !== null
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== 'ESRCH'
    }
  }

  get #isSeen(): boolean {
    return this.root.started !== null
  }
}

/** The pid may have been given to another process since it was found. */
function send({ pid, started }: Pick<ProcessInfo, 'pid' | 'started'>, signal: NodeJS.Signals): void {
  if (isStill(pid, started)) tryKill(pid, signal)
}

/** Where nobody can look, it was a moment ago. */
function isStill(pid: number, started: number): boolean {
  try {
    return readProcess(pid)?.started === started
  } catch {
    return true
  }
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Gone already, or somebody else's: who is still there is named at the end.
  }
}
