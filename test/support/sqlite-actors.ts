/** Starts actors, in namespaces and as users of their own where asked, and ends every one of them with its test. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type {
  AcquireOutcome,
  Claim,
  ClaimRef,
  HeldRef,
  Holding,
  Key,
  Probe,
  ReleaseOutcome,
  RenewOutcome,
} from '../../src/store.js'
import { plainClaim } from './claims.js'
import { decode, encode } from './sqlite-lines.js'

export interface Hold {
  readonly from: number
  readonly to: number
  readonly fence: bigint
}

/** On the host clock: when the question that was answered with a grant was sent, and when the answer was there. */
export interface Grant {
  readonly fence: bigint
  readonly sentAt: number
  readonly at: number
}

export interface ActorOptions {
  /** A command that runs the actor, such as `['unshare', '--pid', '--fork']`. */
  readonly through?: readonly string[]
  /** Shell lines to run before it, such as mounts; implies a shell. */
  readonly before?: string
  readonly env?: Record<string, string>
}

const actorPath = fileURLToPath(new URL('./sqlite-actor.js', import.meta.url))

export class Actor {
  readonly process: ChildProcess
  readonly #waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()
  #ids = 0
  #stderr = ''

  constructor(path: string, { through = [], before, env = {} }: ActorOptions = {}) {
    const node = [process.execPath, actorPath, path]
    const run = before === undefined ? node : ['sh', '-ec', `${before}\nexec "$@"`, 'sh', ...node]
    const [command = '', ...args] = [...through, ...run]
    this.process = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } })
    const { stdout, stderr } = this.process
    if (stdout) createInterface({ input: stdout }).on('line', (line) => this.#hear(line))
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    this.process.stdin?.on('error', () => {})
    this.process.once('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the actor ended: ${this.#stderr}`))
      this.#waiting.clear()
    })
  }

  async ready(): Promise<this> {
    await new Promise<string>((resolve, reject) => this.#waiting.set(0, { resolve, reject }))
    return this
  }

  acquire = (claim: Claim): Promise<AcquireOutcome> => this.#ask('acquire', claim)
  renew = (held: HeldRef): Promise<RenewOutcome> => this.#ask('renew', held)
  release = (ref: ClaimRef, keepMs = 0): Promise<ReleaseOutcome> => this.#ask('release', ref, keepMs)
  revoke = (key: Key, force: boolean): Promise<{ kind: string }> => this.#ask('revoke', key, force)
  inspect = (key: Key): Promise<Holding | null> => this.#ask('inspect', key)
  probe = (): Promise<Probe> => this.#ask('probe')
  about = (): Promise<{ pid: number; identity: string | null; now: number; wall: number }> => this.#ask('about')
  obtain = (claim: Claim, hints = true): Promise<Grant> => this.#ask('obtain', claim, hints)
  cycles = (claim: Claim, count: number, holdMs = 0): Promise<Hold[]> => this.#ask('cycles', claim, count, holdMs)

  sees = (pid: number): Promise<boolean> => this.#ask('sees', pid)

  #ask<T>(...request: [string, ...unknown[]]): Promise<T> {
    const id = ++this.#ids
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.process.stdin?.write(`${encode([id, ...request])}\n`)
    })
  }

  #hear(line: string): void {
    const [id, verdict, value] = decode(line) as [number, 'ok' | 'error', never]
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (verdict === 'ok') return waiting?.resolve(value)
    const facts = value as { name: string; message: string; effect?: string }
    waiting?.reject(Object.assign(new Error(facts.message), facts))
  }

  /** Ends the actor; with a signal that cannot be waited for, such as SIGSTOP, only sends it. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      if (this.process.exitCode !== null || this.process.signalCode !== null) return resolve()
      if (signal !== 'SIGKILL') resolve()
      this.process.once('close', () => resolve())
    })
    this.process.kill(signal)
    return ended
  }
}

/** A folder of its own, and every actor that works in it; all gone at the end. */
export async function stage<T>(
  play: (folder: string, actor: (options?: ActorOptions & { path?: string }) => Promise<Actor>) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  const actors: Actor[] = []
  try {
    return await play(folder, (options = {}) => {
      const actor = new Actor(options.path ?? join(folder, 'leases.db'), options)
      actors.push(actor)
      return actor.ready()
    })
  } finally {
    await Promise.all(actors.map((actor) => actor.kill()))
    rmSync(folder, { recursive: true, force: true })
  }
}

let owners = 0

/** `life: { pids: [] }` stands for the actor that claims. */
export const claim = (over: Partial<Claim> & { name?: string } = {}): Claim => {
  const { name = 'k', ...rest } = over
  const owner = `owner ${process.pid} ${++owners}`
  return plainClaim(owner, { key: { namespace: 'test', name }, life: { pids: [] }, ...rest })
}
