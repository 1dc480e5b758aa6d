import { createHash } from 'node:crypto'
import { turn } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { Cancellation } from '../../store.js'
import type { Asker } from './client.js'
import type { Connection } from './connection.js'
import { cancelled } from './connections.js'
import { isDemoted, itemError, nonsense, textOf } from './replies.js'
import { type StepName, scriptText } from './scripts.js'

/** The most that one script does, so that it keeps the server from others for well under a millisecond. */
const MAX_ITEMS = 64
const REMEMBERED_LIVES = 4

/** How long an answer is still waited for when nobody waits for it any more. */
const LINGER_MS = 1_000

/** One question about one key. Listens to its own signal. */
class Item {
  readonly key: string
  readonly arg: string | undefined
  readonly signal: Cancellation
  readonly patienceMs: number
  readonly #connection: Connection
  readonly #mayGrant: boolean
  readonly #resolve: (answer: string) => void
  readonly #reject: (error: unknown) => void
  sent = false

  constructor(
    connection: Connection,
    key: string,
    arg: string | undefined,
    mayGrant: boolean,
    { signal, patienceMs }: Asked,
    resolve: (answer: string) => void,
    reject: (error: unknown) => void,
  ) {
    this.#connection = connection
    this.key = key
    this.arg = arg
    this.#mayGrant = mayGrant
    this.signal = signal
    this.patienceMs = patienceMs
    this.#resolve = resolve
    this.#reject = reject
    signal.addEventListener('abort', this.#onAbort)
  }

  resolve(answer: string): void {
    this.signal.removeEventListener('abort', this.#onAbort)
    this.#resolve(answer)
  }

  reject(error: unknown): void {
    this.signal.removeEventListener('abort', this.#onAbort)
    this.#reject(error)
  }

  /** It turns out that it was not carried out. */
  unsent(): void {
    this.sent = false
    if (this.signal.aborted) this.reject(cancelled(this.signal))
  }

  readonly #onAbort = (): void => {
    if (!this.sent) return this.reject(cancelled(this.signal))
    this.#connection.givenUp()
    const unknown = new StoreError('cancelled on its way', 'unknown', { cause: this.signal.reason })
    // A grant that comes a little late is still given back by who asked (B173); one that comes later ends with its TTL.
    if (this.#mayGrant) this.#connection.later(LINGER_MS, () => this.reject(unknown))
    else this.reject(unknown)
  }
}

export interface Asked {
  readonly signal: Cancellation
  /** Without an answer for longer, others are better asked on another connection. */
  readonly patienceMs: number
  /**
   * `now`: with what else is asked in the same tick. `soon`: with what falls due in the same turn of the event loop, where timers
   * fire one after another. Default `now`; either costs a lone question nothing that counts.
   */
  readonly when?: 'now' | 'soon'
}

/** Questions that travel together. */
class Batch implements Asker {
  readonly connection: Connection
  readonly step: StepName
  items: Item[]
  readonly #steps: Steps
  #whole = false

  constructor(steps: Steps, connection: Connection, step: StepName, item: Item) {
    this.#steps = steps
    this.connection = connection
    this.step = step
    this.items = [item]
  }

  send(): void {
    this.items = this.items.filter(({ signal }) => !signal.aborted)
    if (this.items.length === 0) return
    let patienceMs = Number.POSITIVE_INFINITY
    for (const item of this.items) {
      item.sent = true
      if (item.patienceMs < patienceMs) patienceMs = item.patienceMs
    }
    this.connection.send(this.#steps.command(this, this.#whole), patienceMs, this)
  }

  answered(reply: unknown): void {
    try {
      deliver(this.connection, this.items, textOf(reply))
    } catch (error) {
      this.#reject(error)
    }
  }

  /** Sent whole, where it is the first time in this server life. */
  failed(error: unknown): void {
    if (this.#whole || !isUnknownScript(error)) return this.#reject(error)
    for (const item of this.items) item.unsent()
    this.#whole = true
    this.send()
  }

  #reject(error: unknown): void {
    for (const item of this.items) item.reject(error)
  }
}

/** Sends steps to the server; those that are asked for together travel together, and a lone one at once. */
export class Steps {
  readonly #counter: string
  readonly #gathered = new Map<StepName, Batch>()
  readonly #scripts = new Map<string, Map<StepName, { readonly text: string; readonly sha: string }>>()

  /** `counter`: the key of the counter of fences. */
  constructor(counter: string) {
    this.#counter = counter
  }

  /**
   * The script's answer for one key; `arg` is what the script's comment lists, with blanks between.
   * @throws StoreError; OtherLifeError where it may be asked again on a new connection.
   */
  ask(connection: Connection, step: StepName, key: string, arg: string | undefined, asked: Asked): Promise<string> {
    if (asked.signal.aborted) return Promise.reject(cancelled(asked.signal))
    return new Promise((resolve, reject) => {
      this.#gather(
        connection,
        step,
        new Item(connection, key, arg, step === 'acquire', asked, resolve, reject),
        asked.when,
      )
    })
  }

  #gather(connection: Connection, step: StepName, item: Item, when: Asked['when'] = 'now'): void {
    const gathered = this.#gathered.get(step)
    if (gathered?.connection === connection && gathered.items.length < MAX_ITEMS) {
      gathered.items.push(item)
      return
    }
    const batch = new Batch(this, connection, step, item)
    if (when === 'now' && connection.idle) return batch.send()
    this.#gathered.set(step, batch)
    const flush = () => {
      if (this.#gathered.get(step) === batch) this.#gathered.delete(step)
      batch.send()
    }
    if (when === 'now') process.nextTick(flush)
    else void turn().then(flush)
  }

  /** `whole`: the text of the script and not its hash. */
  command({ connection, step, items }: Batch, whole: boolean): string[] {
    const { text, sha } = this.#script(connection.life.runId, step)
    const counts = step === 'acquire' || step === 'renew'
    const command = [whole ? 'EVAL' : 'EVALSHA', whole ? text : sha, String(items.length + (counts ? 1 : 0))]
    if (counts) command.push(this.#counter)
    for (const { key } of items) command.push(key)
    for (const { arg } of items) if (arg !== undefined) command.push(arg)
    command.push(connection.mark)
    return command
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

function refused(connection: Connection, answer: string): StoreError {
  const error = itemError(answer, connection.place)
  if (isDemoted(error)) connection.retire()
  return error
}

/** @throws StoreError where the reply is for none of them. */
function deliver(connection: Connection, items: readonly Item[], reply: string): void {
  const end = reply.indexOf('\n')
  const first = end < 0 ? reply : reply.slice(0, end)
  if (first !== 'ok') {
    if (first.startsWith('? ')) throw connection.replaced()
    if (first.startsWith('e ')) throw refused(connection, first)
    if (!first.startsWith('ok ')) throw nonsense(reply)
  }
  const answers = end < 0 ? [] : reply.slice(end + 1).split('\n')
  if (answers.length !== items.length) throw nonsense(reply)
  if (first !== 'ok') connection.mark = first.slice(3)
  for (let i = 0; i < items.length; i++) {
    const [item, answer] = [items[i] as Item, answers[i] as string]
    if (answer.startsWith('e ')) item.reject(refused(connection, answer))
    else item.resolve(answer)
  }
}
