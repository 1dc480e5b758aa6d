import type { Claim, HeldRef, Key, Store } from '../../src/store.js'
import type { Clients } from './collect.js'

/** Everything as it was but for some members, which get the right store and what the clients of one backend share. */
export const wrong = (change: (right: Store, memo: Memo) => Partial<Store>): Clients => {
  return (server) => {
    const memo: Memo = new Map()
    return () => {
      const right = server.connect()
      return { ...right, ...change(right, memo) }
    }
  }
}

/** What a wrong store remembers about each key beside the right one. */
type Memo = Map<string, HeldRef>
const id = ({ namespace, name }: Key): string => JSON.stringify([namespace, name])

/** Acquires, and remembers under `as` who was granted what. */
export const remember =
  (right: Store, memo: Memo, as: (claim: Claim) => string): Store['acquire'] =>
  async (claim, call) => {
    const outcome = await right.acquire(claim, call)
    if (outcome.kind === 'granted') memo.set(as(claim), { ...claim, fence: outcome.fence })
    return outcome
  }

const HOUR_MS = 3_600_000

/** Renews whoever knows the fence. */
export const noOwnerCheck = wrong((right, memo) => ({
  acquire: remember(right, memo, (claim) => id(claim.key)),
  renew: (held, call) => right.renew({ ...held, owner: memo.get(id(held.key))?.owner ?? held.owner }, call),
}))

/** Takes the key anew where it finds none: SET without XX. */
export const renewReCreates = wrong((right) => ({
  async renew(held, call) {
    const outcome = await right.renew(held, call)
    const isGone = outcome.kind === 'lost' && (await right.inspect(held.key, call)) === null
    if (!isGone) return outcome
    await right.acquire({ ...held, minHoldMs: 0, queue: false, life: 'outlives-process' }, call)
    return { kind: 'renewed', fence: held.fence, ttlMs: held.ttlMs }
  },
}))

/** Gives the fence of the grant before, unless a floor was in between. */
export const fenceRepeats = wrong((right, memo) => ({
  async acquire(claim, call) {
    const outcome = await right.acquire(claim, call)
    if (outcome.kind !== 'granted') return outcome
    const before = memo.get(id(claim.key))
    const isNext = before?.owner !== claim.owner && before?.fenceFloor === outcome.fence - 1n
    const fence = before && isNext ? before.fence : outcome.fence
    memo.set(id(claim.key), { ...claim, fence, fenceFloor: outcome.fence })
    return { ...outcome, fence }
  },
  async renew(held, call) {
    // What the right store calls the fence is kept as `fenceFloor`.
    const known = memo.get(id(held.key))
    const right_ = known?.fence === held.fence && known.owner === held.owner ? known.fenceFloor : held.fence
    const outcome = await right.renew({ ...held, fence: right_ }, call)
    return outcome.kind === 'renewed' ? { ...outcome, fence: held.fence } : outcome
  },
}))

/** Keeps every lease for an hour. */
export const ttlIgnored = wrong((right) => ({
  async acquire(claim, call) {
    const outcome = await right.acquire({ ...claim, ttlMs: HOUR_MS }, call)
    return outcome.kind === 'granted' ? { ...outcome, ttlMs: claim.ttlMs } : outcome
  },
}))

/** Joins namespace and name with a colon. */
export const keysShareALease = wrong((right) => {
  const joined = ({ namespace, name }: Key): Key => ({ namespace: '', name: `${namespace}:${name}` })
  return {
    acquire: (claim, call) => right.acquire({ ...claim, key: joined(claim.key) }, call),
    renew: (held, call) => right.renew({ ...held, key: joined(held.key) }, call),
    release: (ref, call) => right.release({ ...ref, key: joined(ref.key) }, call),
    async inspect(key, call) {
      const holding = await right.inspect(joined(key), call)
      return holding && { ...holding, namespace: key.namespace, key: key.name }
    },
    async *list(namespace, prefix, call) {
      for await (const holding of right.list?.('', `${namespace}:${prefix}`, call) ?? []) {
        yield { ...holding, namespace, key: holding.key.slice(namespace.length + 1) }
      }
    },
    ...(right.revoke && { revoke: (key, how, call) => right.revoke?.(joined(key), how, call) ?? Promise.reject() }),
    ...(right.watch && {
      watch: (ref, hint, call) => right.watch?.({ ...ref, key: joined(ref.key) }, hint, call) ?? Promise.reject(),
    }),
  }
})

/** Tells whoever held the key once that he holds it still. */
export const deadOwnerHeld = wrong((right, memo) => ({
  acquire: remember(right, memo, (claim) => claim.owner),
  async renew(held, call) {
    const outcome = await right.renew(held, call)
    const wasGranted = memo.get(held.owner)?.fence === held.fence
    const isOver = outcome.kind === 'lost' && outcome.reason !== 'revoked'
    return isOver && wasGranted ? { kind: 'renewed', fence: held.fence, ttlMs: held.ttlMs } : outcome
  },
}))

/** Deletes the lease without looking whose it is. */
export const releaseFreesAnothers = wrong((right, memo) => ({
  acquire: remember(right, memo, (claim) => id(claim.key)),
  release: (ref, call) => right.release({ ...ref, owner: memo.get(id(ref.key))?.owner ?? ref.owner }, call),
}))

/** Takes the key from its owner and gives it anew when the owner asks again. */
export const reAskMintsAFence = wrong((right, memo) => ({
  async acquire(claim, call) {
    const first = await remember(right, memo, (c) => c.owner)(claim, call)
    if (first.kind !== 'granted' || !memo.has(`asked ${claim.owner}`)) {
      memo.set(`asked ${claim.owner}`, { ...claim, fence: 0n })
      return first
    }
    await right.release(claim, call)
    return right.acquire(claim, call)
  },
}))

/** Keeps a released key under the name of its former owner. */
export const tombstoneIgnored = wrong((right) => ({
  async release(ref, { keepMs = 0, ...call }) {
    const outcome = await right.release(ref, call)
    if (outcome.kind === 'absent' || keepMs === 0) return outcome
    const rest = { lockDelayMs: 0, minHoldMs: 0, fenceFloor: 0n, queue: false, life: 'outlives-process' as const }
    await right.acquire({ ...ref, ttlMs: keepMs, ...rest }, call)
    return outcome
  },
}))

/** Frees at once what was to be kept. */
export const keepMsIgnored = wrong((right) => ({
  release: (ref, { signal }) => right.release(ref, { signal }),
}))

/** Frees the key when the holder stops believing, and not the lock delay later. */
export const lockDelayIgnored = wrong((right) => ({
  acquire: (claim, call) => right.acquire({ ...claim, lockDelayMs: 0 }, call),
  renew: (held, call) => right.renew({ ...held, lockDelayMs: 0 }, call),
}))
