/**
 * A server program as a child of the test process, which never outlives it: it is killed by the kernel when the test
 * process dies in whatever way (where `setpriv` is there to ask for that), and by us when it exits.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

let canTie: boolean | undefined

export interface Launched {
  readonly pid: number
  /** The last of what it wrote, for the message of a failure. */
  log(): string
  readonly exited: boolean
  /** Resolves when it is dead. */
  signal(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  pause(): void
  resume(): void
}

export async function launch(command: string, args: readonly string[], env: Record<string, string>): Promise<Launched> {
  canTie ??= spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true']).status === 0
  const line = canTie ? ['setpriv', '--pdeathsig', 'KILL', command, ...args] : [command, ...args]
  const child = spawn(line[0] ?? command, line.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let log = ''
  const keep = (text: string) => {
    log = (log + text).slice(-4000)
  }
  child.stdout.setEncoding('utf8').on('data', keep)
  child.stderr.setEncoding('utf8').on('data', keep)
  await once(child, 'spawn')
  running.add(child)
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      running.delete(child)
      resolve()
    })
  })
  const exited = () => child.exitCode !== null || child.signalCode !== null
  return {
    pid: child.pid ?? 0,
    log: () => log,
    get exited() {
      return exited()
    },
    async signal(signal) {
      if (exited()) return
      child.kill(signal)
      // A paused process gets SIGTERM only when it goes on.
      child.kill('SIGCONT')
      await gone
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}

/** A port of the loopback interface that nobody uses now. Somebody may before we do: whoever launches tries again. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
