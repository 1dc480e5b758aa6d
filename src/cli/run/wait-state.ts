import type { LeaseEvent } from '../../events.js'
import { textOf } from '../../messages.js'

export type AttemptEvent = LeaseEvent & { readonly type: 'attempt' }

/** Why the key was not granted. */
export type Obstacle =
  | { readonly kind: 'held'; readonly holder: string | undefined }
  | { readonly kind: 'not-ready'; readonly why: string; readonly retryAfterMs: number }
  | { readonly kind: 'unavailable'; readonly error: string }

/** The holders of a busy key change faster than anybody reads. */
const HOLDERS_GAP_MS = 5_000
/** A store that will be ready so much later than it said, and says why, was restarted once more. */
const LATER_MS = 1_000

/** What a wait looks like, from one answer of the store to the next, and whether that is worth telling. */
export class WaitState {
  #told: Obstacle | null = null
  #toldAt = Number.NEGATIVE_INFINITY

  /** What stands in the way now, if it is something else than was told last. `was` is what was told. */
  changed(event: AttemptEvent, now: number): { readonly is: Obstacle; readonly was: Obstacle | null } | null {
    const is = obstacleOf(event)
    const was = this.#told
    if (!is || (was && isSame(is, was) && !this.#isLater(is, was, now))) return null
    if (is.kind === 'held' && was?.kind === 'held' && now - this.#toldAt < HOLDERS_GAP_MS) return null
    this.#told = is
    this.#toldAt = now
    return { is, was }
  }

  #isLater(is: Obstacle, was: Obstacle, now: number): boolean {
    if (is.kind !== 'not-ready' || was.kind !== 'not-ready' || is.why === was.why) return false
    return now + is.retryAfterMs > this.#toldAt + was.retryAfterMs + LATER_MS
  }
}

/** `null` for a grant, and where the first question had no answer: that ends the wait, and is told as its end. */
export function obstacleOf(event: AttemptEvent): Obstacle | null {
  switch (event.outcome) {
    case 'granted':
      return null
    case 'held':
      return { kind: 'held', holder: event.holder }
    case 'not-ready':
      return { kind: 'not-ready', why: event.why ?? 'it does not say why', retryAfterMs: event.retryAfterMs ?? 0 }
    case 'unavailable':
      return event.attempt === 1 ? null : { kind: 'unavailable', error: textOf(event.error) }
  }
}

/** The words of a failure may differ each time, and tell nothing new. */
const isSame = (one: Obstacle, other: Obstacle): boolean =>
  one.kind === 'held' && other.kind === 'held' ? one.holder === other.holder : one.kind === other.kind

/** A wait that goes on is told again after this long, then after twice as long each time, up to the last. */
const REMIND_MS = 60_000
const REMIND_AT_MOST_MS = 3_600_000

/** When whoever reads the log of a job that should have been done long ago is told once more what it waits for. */
export class Reminders {
  #after = REMIND_MS
  #at: number

  constructor(began: number) {
    this.#at = began + REMIND_MS
  }

  /** True once each time that it is due. */
  due(now: number): boolean {
    if (now < this.#at) return false
    this.#after = Math.min(this.#after * 2, REMIND_AT_MOST_MS)
    this.#at = now + this.#after
    return true
  }
}
