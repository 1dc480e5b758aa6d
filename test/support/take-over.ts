/** kill -9 of a holder that uses the library or `holdfast run`, and how soon a waiter in another process holds. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { systemEnvironment } from '../../src/index.js'
import { LeaseWorker } from './lease-workers.js'

const CLI = fileURLToPath(new URL('../../bundle/cli/main.js', import.meta.url))
const { host } = systemEnvironment()

/** `visible`: same pid namespace · `hidden`: a pid namespace of its own · `run`: the command line. */
export type HolderKind = 'visible' | 'hidden' | 'run'

/** Milliseconds from the kill to the next holder, kill by kill. */
export async function takeOvers(kind: HolderKind, kills: number, ttlMs: number): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-take-over-'))
  const path = join(folder, 'leases.db')
  const gaps: number[] = []
  try {
    for (let i = 0; i < kills; i++) {
      const holder = await startHolder(kind, path, ttlMs)
      const waiter = new LeaseWorker({ path, ttlMs })
      await waiter.hear('started')
      // At a different moment of the heartbeat each time.
      await sleep(150 + (i * ttlMs) / kills)
      const killedAt = host.now()
      await holder.kill()
      const { at } = await waiter.hear('held')
      gaps.push(at - killedAt)
      await waiter.kill()
    }
    return gaps
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Holder {
  kill(): Promise<void>
}

async function startHolder(kind: HolderKind, path: string, ttlMs: number): Promise<Holder> {
  if (kind === 'run') return startRun(path, ttlMs)
  const through = kind === 'hidden' ? ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'] : []
  const worker = new LeaseWorker({ path, ttlMs, through })
  await worker.hear('held')
  return { kill: () => worker.kill() }
}

/** Ready when its command runs, and the store knows whose death frees the lease. */
async function startRun(path: string, ttlMs: number): Promise<Holder> {
  const args = [
    'run',
    '--store',
    `sqlite:${path}`,
    '--ttl',
    `${ttlMs}ms`,
    'key',
    '--',
    'sh',
    '-c',
    'echo up; exec sleep 600',
  ]
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return {
    async kill() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
