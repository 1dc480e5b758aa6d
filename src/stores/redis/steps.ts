import { createHash } from 'node:crypto'
import { turn } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { Connection } from './connection.js'
import { cancelled } from './connections.js'
import type { Counter } from './keys.js'
import { itemError, listOf, nonsense, textOf } from './replies.js'
import { type StepName, scriptText } from './scripts.js'

/** The most that one script does, so that it keeps the server from others for well under a millisecond. */
const MAX_ITEMS = 64
const REMEMBERED_LIVES = 4

/** One question about one key. Listens to its own signal. */
class Item {
  readonly key: string
  readonly args: readonly string[]
  readonly signal: AbortSignal
  readonly patienceMs: number
  readonly #connection: Connection
  readonly #resolve: (answer: string) => void
  readonly #reject: (error: unknown) => void
  sent = false

  constructor(
    connection: Connection,
    key: string,
    args: readonly string[],
    { signal, patienceMs }: Asked,
    resolve: (answer: string) => void,
    reject: (error: unknown) => void,
  ) {
    this.#connection = connection
    this.key = key
    this.args = args
    this.signal = signal
    this.patienceMs = patienceMs
    this.#resolve = resolve
    this.#reject = reject
    signal.addEventListener('abort', this)
  }

  resolve(answer: string): void {
    this.signal.removeEventListener('abort', this)
    this.#resolve(answer)
  }

  reject(error: unknown): void {
    this.signal.removeEventListener('abort', this)
    this.#reject(error)
  }

  handleEvent(): void {
    if (!this.sent) return this.reject(cancelled(this.signal))
    this.#connection.givenUp()
    this.reject(new StoreError('cancelled on its way', 'unknown', { cause: this.signal.reason }))
  }
}

export interface Asked {
  readonly signal: AbortSignal
  /** Without an answer for longer, others are better asked on another connection. */
  readonly patienceMs: number
  /**
   * `now`: with what else is asked in the same tick. `soon`: with what falls due in the same turn of the event loop, where timers
   * fire one after another. Default `now`; either costs a lone question nothing that counts.
   */
  readonly when?: 'now' | 'soon'
}

interface Gathered {
  readonly connection: Connection
  readonly items: Item[]
}

/** Sends steps to the server; those that are asked for together travel together, and a lone one at once. */
export class Steps {
  readonly #counter: Counter
  readonly #gathered = new Map<StepName, Gathered>()
  readonly #scripts = new Map<string, Map<StepName, { readonly text: string; readonly sha: string }>>()

  constructor(counter: Counter) {
    this.#counter = counter
  }

  /**
   * The script's answer for one key.
   * @throws StoreError; OtherLifeError when the server was restarted behind this connection.
   */
  ask(connection: Connection, step: StepName, key: string, args: readonly string[], asked: Asked): Promise<string> {
    if (asked.signal.aborted) return Promise.reject(cancelled(asked.signal))
    return new Promise((resolve, reject) => {
      this.#gather(connection, step, new Item(connection, key, args, asked, resolve, reject), asked.when)
    })
  }

  #gather(connection: Connection, step: StepName, item: Item, when: Asked['when'] = 'now'): void {
    const gathered = this.#gathered.get(step)
    if (gathered?.connection === connection && gathered.items.length < MAX_ITEMS) {
      gathered.items.push(item)
      return
    }
    const fresh: Gathered = { connection, items: [item] }
    this.#gathered.set(step, fresh)
    const flush = () => {
      if (this.#gathered.get(step) === fresh) this.#gathered.delete(step)
      this.#send(connection, step, fresh.items).catch(() => {})
    }
    if (when === 'now') process.nextTick(flush)
    else void turn().then(flush)
  }

  async #send(connection: Connection, step: StepName, gathered: readonly Item[]): Promise<void> {
    let items = gathered.filter(({ signal }) => !signal.aborted)
    if (items.length === 0) return
    try {
      const script = this.#script(connection.life.runId, step)
      const patienceMs = Math.min(...items.map((item) => item.patienceMs))
      let reply: unknown
      try {
        if (connection.ended)
          throw new StoreError(`${connection.place}: the connection ended before it was asked`, 'none')
        for (const item of items) item.sent = true
        reply = await connection.send(this.#command(connection, 'EVALSHA', script.sha, step, items), patienceMs)
      } catch (error) {
        if (!isUnknownScript(error)) throw error
        // The first time in this server life, or another life.
        for (const item of items) item.sent = false
        items = items.filter(({ signal }) => !signal.aborted)
        if (items.length === 0) return
        for (const item of items) item.sent = true
        reply = await connection.send(this.#command(connection, 'EVAL', script.text, step, items), patienceMs)
      }
      deliver(connection, items, listOf(reply).map(textOf))
    } catch (error) {
      for (const item of items) item.reject(error)
    }
  }

  #command({ mark }: Connection, command: string, script: string, step: StepName, items: readonly Item[]): string[] {
    const keys = items.map(({ key }) => key)
    if (step === 'acquire' || step === 'renew') keys.unshift(this.#counter.value, this.#counter.born)
    const args = [command, script, String(keys.length), ...keys, mark]
    for (const item of items) args.push(...item.args)
    return args
  }

  #script(runId: string, step: StepName): { readonly text: string; readonly sha: string } {
    let scripts = this.#scripts.get(runId)
    if (!scripts) {
      if (this.#scripts.size >= REMEMBERED_LIVES) this.#scripts.delete(this.#scripts.keys().next().value as string)
      scripts = new Map()
      this.#scripts.set(runId, scripts)
    }
    let script = scripts.get(step)
    if (!script) {
      const text = scriptText(step, runId)
      script = { text, sha: createHash('sha1').update(text).digest('hex') }
      scripts.set(step, script)
    }
    return script
  }
}

const isUnknownScript = (error: unknown): boolean =>
  error instanceof StoreError && error.cause instanceof Error && error.cause.message.startsWith('NOSCRIPT')

function deliver(connection: Connection, items: readonly Item[], answers: readonly string[]): void {
  const [first = '', ...rest] = answers
  if (first.startsWith('? ')) {
    const error = connection.replaced()
    for (const item of items) item.reject(error)
    return
  }
  if (first.startsWith('e ')) throw itemError(first, connection.place)
  const isOk = first === 'ok' || first.startsWith('ok ')
  if (!isOk || rest.length !== items.length) throw nonsense(answers.join(' '))
  if (first !== 'ok') connection.mark = first.slice(3)
  for (const [i, item] of items.entries()) {
    const answer = rest[i] as string
    // It is no master any more: look at it anew before it is asked again.
    if (/^e \S+ -?READONLY /.test(answer)) connection.retire()
    if (answer.startsWith('e ')) item.reject(itemError(answer, connection.place))
    else item.resolve(answer)
  }
}
