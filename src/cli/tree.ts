import { canSeeProcesses, environmentHolds, type ProcessInfo, processesSince, readProcess } from './processes.js'

/** The variable that marks everything below a command, wherever in the process tree it went. */
export const COOKIE = 'HOLDFAST_TREE'

/** Rounds of stopping what is found: each stops what the round before could not see yet. */
const STOP_ROUNDS = 20

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

  /** Everything that is alive now. */
  members(): ProcessInfo[] {
    const root = this.#root
    if (!root) return []
    const candidates = processesSince(root.started).filter(({ pid }) => pid !== process.pid)
    const members = new Map(candidates.filter((each) => this.#belongs(each, root)).map((each) => [each.pid, each]))
    for (let grew = true; grew; ) {
      grew = false
      for (const each of candidates) {
        if (members.has(each.pid) || !members.has(each.parent)) continue
        members.set(each.pid, each)
        grew = true
      }
    }
    for (const { pid, started } of members.values()) this.#known.set(pid, started)
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
   * Kills everything that is there now. All of it is stopped first, until a look finds nobody new: who is stopped
   * starts nothing, and its children keep it as their parent, so nobody can slip away between two looks.
   */
  kill(): void {
    let members: ProcessInfo[] = []
    for (let round = 0, count = -1; round < STOP_ROUNDS && members.length !== count; round++) {
      count = members.length
      if (this.#ownGroup) this.#signalGroup('SIGSTOP')
      members = this.members()
      for (const member of members) send(member, 'SIGSTOP')
    }
    if (this.#ownGroup) this.#signalGroup('SIGKILL')
    else if (!this.#root) this.signalCommand('SIGKILL')
    for (const member of members) send(member, 'SIGKILL')
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
