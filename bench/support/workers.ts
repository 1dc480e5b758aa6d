import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Setup } from '../contestants/contestant.js'
import type { Id } from '../contestants/index.js'
import type { Jobs } from '../jobs/index.js'

export interface Question {
  readonly number: number
  readonly job: keyof Jobs
  readonly wish: unknown
}
export interface Answer {
  readonly number: number
  readonly value?: unknown
  readonly error?: string
}

type Wish<J extends keyof Jobs> = Parameters<Jobs[J]>[1]
type Result<J extends keyof Jobs> = Awaited<ReturnType<Jobs[J]>>

/** A process of its own for a contestant, so that nobody pays for another's garbage. */
export class Worker {
  readonly #process: ChildProcess
  readonly #open = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #asked = 0

  constructor(id: Id, setup: Setup) {
    const file = fileURLToPath(new URL('worker.js', import.meta.url))
    this.#process = fork(file, [id, JSON.stringify(setup)], { execArgv: ['--expose-gc'] })
    this.#process.on('message', ({ number, value, error }: Answer) => {
      const question = this.#open.get(number)
      this.#open.delete(number)
      if (error === undefined) question?.resolve(value)
      else question?.reject(new Error(`${id}: ${error}`))
    })
    this.#process.on('exit', (code, signal) => {
      for (const { reject } of this.#open.values()) reject(new Error(`${id}: its process ended: ${signal ?? code}`))
    })
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  ask<J extends keyof Jobs>(job: J, wish: Wish<J>): Promise<Result<J>> {
    const number = ++this.#asked
    return new Promise((resolve, reject) => {
      this.#open.set(number, { resolve: (value) => resolve(value as Result<J>), reject })
      this.#process.send({ number, job, wish } satisfies Question)
    })
  }

  /** Kills it: nothing of it is wanted any more. */
  async end(): Promise<void> {
    this.#open.clear()
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await gone
  }
}
