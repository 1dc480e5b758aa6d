import { inspect } from 'node:util'
import type { Clock, Timer } from './environment.js'
import { StoreError, StoreUnsafeError } from './errors.js'
import type { AcquireOutcome, Claim, ClaimRef, Key, Store } from './store.js'

/**
 * An owner token lives while no release has been sent for it (I4): a late release must never hit a living owner.
 * Once `retired`, a grant that still arrives for it is given back.
 */
export class Owner implements ClaimRef {
  readonly key: Key
  readonly owner: string
  retired = false
  /** A claim of unknown fate may stand in the store: letting go of the owner takes a release. */
  suspect = false
  constructor(key: Key, owner: string) {
    this.key = key
    this.owner = owner
  }
}

export type Attempt =
  | { readonly kind: 'answered'; readonly sentAt: number; readonly outcome: AcquireOutcome }
  /** No verdict. `suspect`: the claim may stand in the store, so its owner must be released and retired. */
  | { readonly kind: 'unavailable'; readonly error: unknown; readonly suspect: boolean; readonly spent: boolean }

/**
 * Asks the store for the key: once, and only after an unknown outcome once more with the same owner. A grant that
 * comes late for the first question still counts, by the time that question was sent (I1).
 */
export function attempt(
  store: Store,
  clock: Clock,
  claim: Claim,
  owner: Owner,
  limits: { readonly callTimeoutMs: number; readonly budgetMs: number; readonly signal: AbortSignal },
  onLateGrant: () => void,
): Promise<Attempt> {
  const giveUpAt = clock.now() + limits.budgetMs
  const scope = new AbortController()
  return new Promise((resolve) => {
    let done = false
    let pending = 0
    let timer: Timer | undefined
    let end: Timer | undefined
    const finish = (result: Attempt) => {
      done = true
      timer?.cancel()
      limits.signal.removeEventListener('abort', cancel)
      // A question still on its way may bring a grant to give back, for as long as that grant would last.
      if (pending > 0) end = clock.timer(claim.ttlMs + claim.lockDelayMs + claim.minHoldMs, () => scope.abort())
      resolve(result)
    }
    const unavailable = (error: unknown, suspect: boolean, spent = suspect) =>
      finish({ kind: 'unavailable', error, suspect, spent })
    const cancel = () => {
      unavailable(limits.signal.reason, true)
      scope.abort()
    }

    const ask = (isSecond: boolean) => {
      const sentAt = clock.now()
      const timeoutMs = Math.min(limits.callTimeoutMs, Math.max(giveUpAt - sentAt, 0))
      let waiting = true
      const noVerdict = (error: unknown) => {
        waiting = false
        timer?.cancel()
        const effect = effectOf(error)
        if (effect === 'unknown') owner.suspect = true
        if (effect !== 'unknown') return unavailable(error, isSecond, isSecond || effect === 'released')
        if (!isSecond && clock.now() < giveUpAt) return ask(true)
        unavailable(error, true)
      }
      const tooLate = () => noVerdict(new StoreError(`no answer within ${Math.round(timeoutMs)} ms`, 'unknown'))
      timer = clock.timer(timeoutMs, tooLate, { keepAlive: true })
      pending++
      const settled = () => {
        pending--
        if (pending === 0) end?.cancel()
      }
      call(() => store.acquire(claim, { signal: scope.signal })).then(
        (outcome) => {
          settled()
          if (!isAnswer(outcome)) return !done && waiting && noVerdict(nonsense('acquire', outcome))
          if (!done && (waiting || outcome.kind === 'granted')) return finish({ kind: 'answered', sentAt, outcome })
          if (outcome.kind !== 'granted') return
          // Nobody waits for it any more; whoever lets go of the owner must give it back.
          owner.suspect = true
          if (owner.retired) onLateGrant()
        },
        (error) => {
          settled()
          if (!done && waiting) noVerdict(error)
        },
      )
    }
    if (limits.signal.aborted) return cancel()
    limits.signal.addEventListener('abort', cancel)
    ask(false)
  })
}

/** A store written in a hurry must not be able to hand out a lease without an end, or without a fence. */
export const isGrant = (outcome: { readonly fence: unknown; readonly ttlMs: unknown }): boolean =>
  typeof outcome.fence === 'bigint' && Number.isFinite(outcome.ttlMs)

const isAnswer = (outcome: AcquireOutcome): boolean =>
  outcome?.kind === 'held' || outcome?.kind === 'not-ready' || (outcome?.kind === 'granted' && isGrant(outcome))

export const nonsense = (operation: string, outcome: unknown) =>
  new StoreError(
    `the store answered nonsense to ${operation}: ${inspect(outcome, { breakLength: Number.POSITIVE_INFINITY })}`,
    'unknown',
  )

export function effectOf(error: unknown): StoreError['effect'] {
  if (error instanceof StoreUnsafeError) return 'none'
  return error instanceof StoreError ? error.effect : 'unknown'
}

/** A store that throws instead of rejecting must not escape our handlers. */
export function call<T>(op: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(op())
  } catch (error) {
    return Promise.reject(error)
  }
}

export type Timed<T> = { readonly value: T } | { readonly error: unknown }

/** One call with our own time-out; never rejects. What comes later is dropped. */
export function timed<T>(
  clock: Clock,
  timeoutMs: number,
  op: (signal: AbortSignal) => Promise<T>,
  keepAlive = true,
): Promise<Timed<T>> {
  const scope = new AbortController()
  return new Promise((resolve) => {
    const timer = clock.timer(
      timeoutMs,
      () => {
        resolve({ error: new StoreError(`no answer within ${timeoutMs} ms`, 'unknown') })
        scope.abort()
      },
      { keepAlive },
    )
    const settle = (result: Timed<T>) => {
      timer.cancel()
      resolve(result)
    }
    call(() => op(scope.signal)).then(
      (value) => settle({ value }),
      (error) => settle({ error }),
    )
  })
}
