import { ask, effectOf, type Timed } from './attempt.js'
import { backoff } from './backoff.js'
import type { Clock } from './environment.js'
import { CallScope } from './scope.js'
import type { ClaimRef, ReleaseOutcome, Store } from './store.js'

/**
 * Releases, asking again until `untilMs` on our clock while the store gives no verdict; null if it never did.
 * `absent` after an earlier try that may have landed is `released`: that try is the likeliest reason.
 */
export function giveBack(
  store: Store,
  clock: Clock,
  ref: ClaimRef,
  untilMs: number,
  limits: { readonly callTimeoutMs: number },
  keepMs: () => number = NOTHING,
): Promise<ReleaseOutcome | null> {
  return new Promise((resolve) => {
    let mayHaveLanded = false
    let tries = 0
    const release = () => {
      const timeoutMs = Math.min(limits.callTimeoutMs, Math.max(untilMs - clock.now(), 1))
      ask(clock, timeoutMs, (call) => store.release(ref, call), new CallScope(keepMs()), answered)
    }
    const answered = (answer: Timed<ReleaseOutcome>) => {
      if ('value' in answer && isAnswer(answer.value)) return resolve(mayHaveLanded ? RELEASED : answer.value)
      mayHaveLanded ||= 'value' in answer || effectOf(answer.error) !== 'none'
      const pauseMs = backoff(tries++, 1, { baseMs: 20, capMs: limits.callTimeoutMs / 4 })
      if (clock.now() + pauseMs >= untilMs) return resolve(null)
      clock.timer(pauseMs, release, { keepAlive: true })
    }
    release()
  })
}

/** A store that answers nonsense must not take the place of the caller's own error. */
const isAnswer = (outcome: ReleaseOutcome | undefined): outcome is ReleaseOutcome =>
  outcome?.kind === 'released' || outcome?.kind === 'absent'

const NOTHING = () => 0
const RELEASED: ReleaseOutcome = { kind: 'released' }
