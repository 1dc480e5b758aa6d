import type { Cancellation, ReleaseOptions } from './store.js'

/**
 * An AbortController that costs nothing until somebody wants a real signal: Node takes several µs to make one and
 * several times that to abort it, more than all the rest of an acquisition.
 */
export class Scope implements Cancellation {
  #aborted = false
  #reason: unknown
  #listeners: (() => void)[] | undefined
  #controller: AbortController | undefined

  get aborted(): boolean {
    return this.#aborted
  }

  /** As with a real one, an AbortError where no reason was given. */
  get reason(): unknown {
    if (this.#aborted) this.#reason ??= new DOMException('This operation was aborted', 'AbortError')
    return this.#reason
  }

  /** The real one, made now if nobody has asked before. */
  realSignal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners ??= []
    this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1
    if (at >= 0) this.#listeners?.splice(at, 1)
  }

  abort(reason?: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    for (const listener of [...(this.#listeners ?? [])]) if (this.#listeners?.includes(listener)) listener()
    this.#listeners = undefined
    this.#controller?.abort(this.reason)
  }
}

/** What a store is called with; whoever called it may abort it. */
export class CallScope extends Scope implements ReleaseOptions {
  readonly keepMs: number
  declare readonly signal: AbortSignal

  /** `keepMs` is for releases. */
  constructor(keepMs = 0) {
    super()
    this.keepMs = keepMs
    // A property of its own, not of the class: a store may be called with a copy, `{ ...call, keepMs: 0 }`.
    Object.defineProperty(this, 'signal', OWN_SIGNAL)
  }

  get cancellation(): Cancellation {
    return this
  }
}

/** One for all: a getter made anew for each object would cost as much as what it saves. */
const OWN_SIGNAL = {
  enumerable: true,
  get(this: CallScope) {
    return this.realSignal()
  },
}
