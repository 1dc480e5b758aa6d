import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a built module of this project in a process of its own; `onStarted` gets hold of it, to send signals. */
export function runChild(
  module: URL,
  args: readonly string[] = [],
  options: { readonly flags?: readonly string[]; readonly onStderr?: (child: ChildProcess, text: string) => void } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [...(options.flags ?? []), fileURLToPath(module), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    options.onStderr?.(child, text)
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}
