/**
 * What holdfast is for, in about ten seconds, with real processes: `npm run demo`.
 *
 * Two workers want the same job. First the one that holds it is killed with -9 in the middle of its work; then one is
 * paused past its TTL and comes back too late.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'

const WORKER = fileURLToPath(new URL('./demo/worker.js', import.meta.url))
const started = performance.now()
const say = (who: string, text: string) =>
  console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(5)} s  ${who.padEnd(10)} ${text}`)

interface Said {
  readonly event: string
  readonly fence?: string
  readonly error?: string
}

/** A worker process, and what it said. */
class Worker {
  readonly name: string
  readonly #child: ChildProcess
  readonly #said: Said[] = []

  constructor(name: string, folder: string) {
    this.name = name
    this.#child = fork(WORKER, [name, folder])
    this.#child.on('message', (message) => {
      const said = message as Said
      this.#said.push(said)
      if (said.event !== 'ready') say(name, describe(said))
    })
  }

  async heard(event: string): Promise<Said> {
    for (;;) {
      const found = this.#said.find((said) => said.event === event)
      if (found) return found
      await once(this.#child, 'message')
    }
  }

  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    }
  }
}

function describe(said: Said): string {
  const sentences: Record<string, string> = {
    waiting: 'waits politely: another process holds "nightly-report"',
    acquired: `holds "nightly-report" with fence ${said.fence}, and works`,
    wrote: `wrote its result with fence ${said.fence}`,
    lost: 'is told that it lost the lease (its signal aborted)',
    refused: `tries to write all the same: refused by the resource: ${said.error}`,
  }
  return sentences[said.event] ?? said.event
}

async function killedMidWork(folder: string): Promise<void> {
  console.log('\n1. The holder is killed with -9 in the middle of its work\n')
  const alice = new Worker('alice', folder)
  const first = await alice.heard('acquired')
  const bob = new Worker('bob', folder)
  await bob.heard('waiting')
  await sleep(1000)
  const killedAt = performance.now()
  alice.signal('SIGKILL')
  say('(you)', 'kill -9 alice')
  const second = await bob.heard('acquired')
  const gap = Math.round(performance.now() - killedAt)
  say(
    '(you)',
    `bob took over ${gap} ms later, with a larger fence: ${BigInt(second.fence ?? 0) > BigInt(first.fence ?? 0)}`,
  )
  await bob.heard('wrote')
  await Promise.all([alice.end(), bob.end()])
}

async function pausedPastItsTtl(folder: string): Promise<void> {
  console.log('\n2. The holder is paused past its TTL (2 s), and comes back too late\n')
  const carol = new Worker('carol', folder)
  await carol.heard('acquired')
  const dave = new Worker('dave', folder)
  await dave.heard('waiting')
  carol.signal('SIGSTOP')
  say('(you)', 'kill -STOP carol: she cannot renew, and does not know it')
  await dave.heard('wrote')
  carol.signal('SIGCONT')
  say('(you)', 'kill -CONT carol: she goes on where she was')
  await carol.heard('refused')
  await Promise.all([carol.end(), dave.end()])
}

const folder = await mkdtemp(join(tmpdir(), 'holdfast-demo-'))
try {
  await killedMidWork(folder)
  await pausedPastItsTtl(folder)
  const ledger = new Database(join(folder, 'ledger.db'), { readonly: true })
  const rows = ledger.prepare('SELECT worker FROM reports').pluck().all()
  ledger.close()
  console.log(`\nWritten: ${rows.join(', ')}. Nobody twice, nobody too late.`)
} finally {
  await rm(folder, { recursive: true, force: true })
}
