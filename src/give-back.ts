import { effectOf, timed } from './attempt.js'
import { backoff } from './backoff.js'
import { type Clock, sleep } from './environment.js'
import type { ClaimRef, ReleaseOutcome, Store } from './store.js'

/**
 * Releases, asking again until `untilMs` on our clock while the store gives no verdict; null if it never did.
 * `absent` after an earlier try that may have landed is `released`: that try is the likeliest reason.
 */
export async function giveBack(
  store: Store,
  clock: Clock,
  ref: ClaimRef,
  untilMs: number,
  limits: { readonly callTimeoutMs: number },
  keepMs: () => number = () => 0,
): Promise<ReleaseOutcome | null> {
  let mayHaveLanded = false
  for (let tries = 0; ; tries++) {
    const timeoutMs = Math.min(limits.callTimeoutMs, Math.max(untilMs - clock.now(), 1))
    const answer = await timed(clock, timeoutMs, (signal) => store.release(ref, { signal, keepMs: keepMs() }))
    if ('value' in answer) return mayHaveLanded ? { kind: 'released' } : answer.value
    mayHaveLanded ||= effectOf(answer.error) !== 'none'
    const pauseMs = backoff(tries, 1, { baseMs: 20, capMs: limits.callTimeoutMs / 4 })
    if (clock.now() + pauseMs >= untilMs) return null
    await sleep(clock, pauseMs, { keepAlive: true })
  }
}
