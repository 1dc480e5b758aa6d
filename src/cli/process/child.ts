import { isUtf8 } from 'node:buffer'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { EXIT, exitOfSignal, usageError } from '../exit.js'
import { shellWord } from '../shell.js'
import type { Cgroup } from './cgroup.js'
import { canSeeProcesses, readProcess } from './processes.js'
import { controllingTerminal } from './terminal.js'
import { COOKIE, Tree } from './tree.js'

export type Ended =
  | {
      readonly kind: 'ended'
      readonly exitCode: number
      readonly how: string
      /** As the kernel tells it: one of the two. */
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
    }
  | { readonly kind: 'not-started'; readonly exitCode: number; readonly why: string }

export interface Started {
  /** `null` when it could not be started. */
  readonly tree: Tree | null
  readonly ended: Promise<Ended>
}

/**
 * Starts the command itself, never a shell, with our stdin, stdout and stderr. It gets a process group of its own, so
 * that all of it can be signalled at once; but not where there is a terminal, which it would lose with that.
 */
export function start(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  cookie: string,
  cgroup: Cgroup | null,
): Started {
  const [file = '', ...args] = command
  if (file === '') return notStarted(file, 'ENOENT')
  const ownGroup = controllingTerminal() === null
  const outer = env[COOKIE]
  const marked = { ...env, [COOKIE]: outer ? `${outer} ${cookie}` : cookie }
  let child: ChildProcess
  try {
    const spawned = () => spawn(file, args, { stdio: 'inherit', detached: ownGroup, env: marked })
    child = cgroup ? cgroup.within(spawned) : spawned()
  } catch (error) {
    return notStarted(file, (error as NodeJS.ErrnoException).code)
  }
  const { pid } = child
  if (pid === undefined) {
    return {
      tree: null,
      ended: new Promise((resolve) =>
        child.once('error', (error) => resolve(refusal(file, (error as NodeJS.ErrnoException).code))),
      ),
    }
  }
  const started = canSeeProcesses() ? (readProcess(pid)?.started ?? null) : null
  const tree = new Tree({ pid, started, ownGroup, cookie, cgroup: cgroup?.folder ?? null })
  const ended = new Promise<Ended>((resolve) => {
    child.once('exit', (code, signal) => {
      tree.commandEnded()
      resolve(
        signal
          ? {
              kind: 'ended',
              exitCode: exitOfSignal(constants.signals[signal]),
              how: `was ended by ${signal}`,
              code,
              signal,
            }
          : { kind: 'ended', exitCode: code ?? EXIT.software, how: `ended with ${code}`, code, signal },
      )
    })
  })
  return { tree, ended }
}

const notStarted = (file: string, code: string | undefined): Started => ({
  tree: null,
  ended: Promise.resolve(refusal(file, code)),
})

/** 127 and 126 as in every shell. */
function refusal(file: string, code: string | undefined): Ended {
  const word = shellWord(file)
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    const why = `there is no command ${word}; check its spelling and PATH (shell built-ins and pipes need: sh -c '…')`
    return { kind: 'not-started', exitCode: EXIT.notFound, why }
  }
  const why =
    code === 'EACCES' ? `${word} is not executable; check its permissions` : `${word} could not be started (${code})`
  return { kind: 'not-started', exitCode: EXIT.notExecutable, why }
}

/**
 * Node reads its arguments as UTF-8 and replaces what is not: the command would get other arguments, and two keys could
 * become one.
 */
export function refuseMangledArguments(argv: readonly string[]): void {
  if (!argv.some((each) => each.includes('\ufffd'))) return
  let given: Buffer
  try {
    given = readFileSync('/proc/self/cmdline')
  } catch {
    return
  }
  if (!isUtf8(given))
    throw usageError(
      'an argument is not UTF-8, and could not be passed on unchanged; rename the file, or use a wrapper script',
    )
}
