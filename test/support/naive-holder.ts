/**
 * A holder as many would write it, right or with one classic fault. The tests of `test/cases/held.test.ts` must pass
 * with the right one and fail with each of the others, or they would show nothing about ours.
 */
import type { Environment, HeldRef, Store } from '../../src/index.js'

export interface Holder {
  readonly signal: AbortSignal
  readonly held: boolean
  release(): Promise<unknown>
}

export interface Mistakes {
  /** The deadline is counted from when the answer came. */
  readonly countsFromReply?: boolean
  /** `held` is a flag that a timer clears. */
  readonly flag?: boolean
  /** The deadline is looked at between renewals only. */
  readonly noDeadlineTimer?: boolean
  /** A renewal that fails counts as one that worked. */
  readonly trustsFailures?: boolean
  /** A renewal that finds nothing takes the key again. */
  readonly reCreates?: boolean
  /** "Not yours" is one more failure. */
  readonly ignoresNo?: boolean
}

export async function naiveHolder(
  store: Store,
  env: Environment,
  name: string,
  mistakes: Mistakes = {},
): Promise<Holder> {
  const { clock } = env
  const ttlMs = 1000
  const ref = { key: { namespace: 'default', name }, owner: env.random.id() }
  const claim = { ...ref, ttlMs, lockDelayMs: 0, minHoldMs: 0, fenceFloor: 0n, queue: false, life: { pids: [1] } }
  const call = { signal: new AbortController().signal }
  const abort = new AbortController()
  let over = false

  let sentAt = clock.now()
  const granted = await store.acquire(claim, call)
  if (granted.kind !== 'granted') throw new Error('the key must be free')
  const held: HeldRef = { ...claim, fence: granted.fence }
  const deadlineFrom = (sent: number) => (mistakes.countsFromReply ? clock.now() : sent) + ttlMs * 0.99 - 2
  let deadline = deadlineFrom(sentAt)

  const end = () => {
    over = true
    abort.abort()
  }
  const look = () => {
    if (!over && clock.now() >= deadline) end()
  }
  const watchDeadline = () => {
    if (over) return
    clock.timer(deadline - clock.now(), () => {
      look()
      watchDeadline()
    })
  }
  const renew = async () => {
    if (over) return
    sentAt = clock.now()
    const sent = sentAt
    try {
      const answer = await store.renew(held, call)
      look()
      if (answer.kind === 'renewed') deadline = Math.max(deadline, deadlineFrom(sent))
      else if (mistakes.reCreates) {
        if ((await store.acquire(claim, call)).kind === 'granted') deadline = deadlineFrom(sent)
      } else if (!mistakes.ignoresNo) end()
    } catch {
      if (mistakes.trustsFailures) deadline = deadlineFrom(sent)
    }
    look()
    beat()
  }
  const beat = () => void (over || clock.timer(333, () => void renew()))
  beat()
  if (!mistakes.noDeadlineTimer) watchDeadline()

  return {
    signal: abort.signal,
    get held() {
      if (!mistakes.flag) look()
      return !over
    },
    release() {
      over = true
      return store.release(ref, call)
    },
  }
}
