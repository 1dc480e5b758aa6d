/** What the scripts say of one key, as the seam says it. */
import { StoreError } from '../../errors.js'
import type { AcquireOutcome, Holding, Key } from '../../store.js'
import { labelIn } from './keys.js'
import { nonsense } from './replies.js'

/** `pttl label` */
export function heldBy(answer: string): AcquireOutcome {
  const [, ttl = '', label = ''] = /^(-?\d+) (.*)$/s.exec(answer) ?? []
  const holder = labelIn(label)
  const left = Number(ttl)
  return {
    kind: 'held',
    queued: false,
    ...(holder !== undefined && { holder }),
    ...(left >= 0 && { retryAfterMs: left }),
  }
}

const STATES = { h: 'held', r: 'revoked', k: 'kept' } as const

/** What `look` answered. `undefined` for what is no lease. */
export function holdingIn(answer: string, { namespace, name }: Key): Holding | null | undefined {
  if (answer === 'n') return null
  const match = /^v (-?\d+) (\d+) hf1 \S+ (\d+) ([hrk]) (\d+) (.*)$/s.exec(answer)
  if (!match) return undefined
  const [, left, now, fence, state, since, label] = match as unknown as string[]
  const shown = labelIn(label as string)
  return {
    namespace,
    key: name,
    fence: BigInt(fence as string),
    state: STATES[state as keyof typeof STATES],
    ...(shown !== undefined && { label: shown }),
    heldForMs: Math.max(0, (Number(now) - Number(since)) / 1000),
    ...(Number(left) >= 0 && { remainingMs: Number(left) }),
  }
}

/** For an answer that is no verdict: somebody else's data stands where ours should, or what answers is no script of ours. */
export function unusable(answer: string, lease: string, counter: string, place: string): StoreError {
  if (answer !== 'c' && answer !== 'f') return nonsense(answer)
  const [key, what] = answer === 'c' ? [counter, 'the counter of fences'] : [lease, 'a lease']
  return new StoreError(
    `${place}: the key ${JSON.stringify(key)} holds something that is not ${what} (of this version); it was left as it is`,
    'none',
  )
}
