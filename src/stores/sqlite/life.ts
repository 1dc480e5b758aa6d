/**
 * When is a holder certainly dead? Pure decisions; `processes.ts` does the looking. In doubt a holder lives, and its
 * lease ends by time.
 */
import { hasEnded as isOver, type ProcessStat } from '../../process-stat.js'

/** What a lease says about the processes that it lives and dies with. */
export interface RecordedLife {
  /** Identity of the host clock: the boot, and the time namespace that start times are counted in. */
  readonly host: string
  /** The pid namespace in which the numbers mean something. */
  readonly pidNamespace: string
  readonly processes: readonly { readonly pid: number; readonly started: string }[]
}

/** From where we look: the same two facts about ourselves. */
export interface Viewpoint {
  readonly host: string
  readonly pidNamespace: string
}

/** `gone`: the kernel knows no such process. `hidden`: there may be one that we cannot see (`hidepid`). */
export type ProcessView = 'gone' | 'hidden' | Pick<ProcessStat, 'started' | 'state' | 'threads'>

function isDead(started: string, view: ProcessView): boolean {
  if (view === 'gone') return true
  if (view === 'hidden') return false
  if (view.started !== started) return true
  return isOver(view)
}

/**
 * Only from the same boot, time namespace and pid namespace can a death be seen. Inode numbers of namespaces are reused,
 * but only once every process of the former one is dead.
 */
export function isVisible(life: RecordedLife | null, from: Viewpoint | null): life is RecordedLife {
  if (!life || !from || life.processes.length === 0) return false
  return life.host === from.host && life.pidNamespace === from.pidNamespace
}

/** Every recorded process is certainly dead. */
export function hasEnded(
  life: RecordedLife | null,
  from: Viewpoint | null,
  look: (pid: number) => ProcessView,
): boolean {
  return isVisible(life, from) && life.processes.every(({ pid, started }) => isDead(started, look(pid)))
}

export function encodeLife(life: RecordedLife | null): string | null {
  if (!life) return null
  return JSON.stringify([life.host, life.pidNamespace, ...life.processes.map(({ pid, started }) => [pid, started])])
}

/** What cannot be understood says nothing. */
export function decodeLife(text: string | null): RecordedLife | null {
  if (text === null) return null
  try {
    const [host, pidNamespace, ...rest] = JSON.parse(text) as unknown[]
    if (typeof host !== 'string' || typeof pidNamespace !== 'string') return null
    const processes = rest.map((one) => {
      const [pid, started] = one as unknown[]
      if (!isPid(pid) || typeof started !== 'string') throw new TypeError('not a process')
      return { pid, started }
    })
    return { host, pidNamespace, processes }
  } catch {
    return null
  }
}

/** Zero and negative numbers mean groups of processes to `kill`. */
export const isPid = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0
