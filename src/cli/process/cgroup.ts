/** Control groups, version 2 (cgroups(7), and cgroup.kill, cgroup.procs in the kernel's cgroup-v2 document). */
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CliError, EXIT, usageError } from '../exit.js'

/**
 * A group of its own for a command: whatever its processes start is in it too, and nothing leaves it without the right
 * to write elsewhere. The kernel kills all of it at once.
 */
export class Cgroup {
  readonly folder: string
  readonly #home: string

  /** @throws CliError (exit 64) where we may not make one. */
  constructor(name: string) {
    this.#home = ownFolder()
    this.folder = join(this.#home, `holdfast-${name}`)
    try {
      mkdirSync(this.folder)
    } catch (error) {
      throw refused(`cannot make a group below ${this.#home}`, error)
    }
    try {
      accessSync(join(this.folder, 'cgroup.kill'), constants.W_OK)
      this.within(() => {})
    } catch (error) {
      this.remove()
      const cause = error instanceof Error ? (error.cause ?? error) : error
      throw refused('cannot move a process to a new group, or kill all of it (Linux 5.14 can)', cause)
    }
  }

  /** Whoever is started by `work` starts in the group: we are in it meanwhile. */
  within<T>(work: () => T): T {
    try {
      moveTo(this.folder)
    } catch (error) {
      throw Object.assign(new Error(`cannot enter ${this.folder}`, { cause: error }), { code: 'no control group' })
    }
    try {
      return work()
    } finally {
      try {
        moveTo(this.#home)
      } catch {
        // We stay in it: then it is not killed as a whole, but one by one.
      }
    }
  }

  remove(): void {
    removeGroup(this.folder)
  }
}

/** Does nothing as long as somebody is in it. */
export function removeGroup(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Who was left behind is named elsewhere.
  }
}

/** Everybody in the group, and in groups below it. */
export function pidsIn(folder: string): number[] {
  try {
    const here = readFileSync(join(folder, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean).map(Number)
    const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    return [...here, ...below.flatMap(({ name }) => pidsIn(join(folder, name)))]
  } catch {
    return []
  }
}

/** All of it, whoever is starting just now included. Never a group that we are in ourselves. */
export function killGroup(folder: string): void {
  if (pidsIn(folder).includes(process.pid)) return
  try {
    writeFileSync(join(folder, 'cgroup.kill'), '1')
  } catch {
    // Removed already.
  }
}

const moveTo = (folder: string): void => writeFileSync(join(folder, 'cgroup.procs'), '0')

/** Where we are in the second version's tree. */
function ownFolder(): string {
  try {
    const path = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'latin1'))?.[1]
    const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/self/mounts', 'latin1'))?.[1]
    if (path !== undefined && mount !== undefined) return join(mount, path)
  } catch (error) {
    throw refused('this system has no control groups', error)
  }
  throw usageError('--cgroup is not possible here: no control groups of version 2 are mounted; leave it out')
}

const refused = (what: string, error: unknown): CliError =>
  new CliError(
    `--cgroup is not possible here: ${what} (${(error as NodeJS.ErrnoException).code ?? error}); let systemd delegate one (Delegate=yes), or leave it out`,
    { exitCode: EXIT.usage, cause: error },
  )
