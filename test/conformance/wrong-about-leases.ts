import { StoreError } from '../../src/errors.js'
import type { CallOptions, Claim } from '../../src/store.js'
import type { Clients } from './collect.js'
import { remember, wrong } from './wrong-stores.js'

const id = ({ key }: Pick<Claim, 'key'>): string => JSON.stringify(key)
const never: CallOptions = { signal: new AbortController().signal }

/** By what is wrong with it: a store for each property of a lease. */
export const wrongAboutLeases: readonly [fault: string, check: string, clients: Clients][] = [
  [
    'grants the key to everybody who comes through the same client',
    'acquire: a held key is refused to everybody else, through the same client and through others',
    wrong((right) => {
      const mine = new Map<string, Claim>()
      return {
        async acquire(claim, call) {
          const before = mine.get(id(claim))
          const outcome = await right.acquire(claim, call)
          if (outcome.kind === 'granted') mine.set(id(claim), claim)
          if (outcome.kind !== 'held' || !before || !(await right.inspect(claim.key, call))) return outcome
          return right.acquire({ ...claim, owner: before.owner }, call)
        },
      }
    }),
  ],
  [
    'lets losers prolong the lease',
    'acquire: a losing attempt changes nothing for the holder (B090, B188)',
    wrong((right, memo) => ({
      async acquire(claim, call) {
        const outcome = await remember(right, memo, id)(claim, call)
        const holder = memo.get(id(claim))
        if (outcome.kind === 'held' && holder) await right.renew({ ...holder, ttlMs: claim.ttlMs }, call)
        return outcome
      },
    })),
  ],
  [
    'grants a re-ask without restoring the TTL',
    'acquire: asking again with the same owner restores the TTL',
    wrong((right, memo) => ({
      async acquire(claim, call) {
        const known = memo.get(claim.owner)
        const holding = known && (await right.inspect(claim.key, call))
        if (known && holding?.fence === known.fence && holding.state === 'held') {
          return { kind: 'granted', fence: known.fence, ttlMs: claim.ttlMs }
        }
        return remember(right, memo, ({ owner }) => owner)(claim, call)
      },
    })),
  ],
  [
    'shows the owner token',
    'acquire: nobody is shown the owner token of another',
    wrong((right, memo) => ({
      acquire: remember(right, memo, id),
      async inspect(key, call) {
        const holding = await right.inspect(key, call)
        return holding && { ...holding, label: memo.get(id({ key }))?.owner ?? '' }
      },
    })),
  ],
  [
    'answers a renewal without restoring the TTL',
    'renew: the owner is renewed with the fence of its grant, and its TTL is restored',
    wrong((right) => ({
      async renew(held, call) {
        const outcome = await right.renew({ ...held, ttlMs: 0, lockDelayMs: 0 }, call)
        return outcome.kind === 'renewed' ? { ...outcome, ttlMs: held.ttlMs } : outcome
      },
    })),
  ],
  [
    'renews an owner with any fence',
    'renew: only with the fence of the grant',
    wrong((right, memo) => ({
      acquire: remember(right, memo, ({ owner }) => owner),
      renew: (held, call) => right.renew({ ...held, fence: memo.get(held.owner)?.fence ?? held.fence }, call),
    })),
  ],
  [
    'answers every release with yes',
    'release: of what is not there is absent, however often it is asked (B004)',
    wrong((right) => ({
      async release(ref, call) {
        await right.release(ref, call)
        return { kind: 'released' }
      },
    })),
  ],
  [
    'frees a lease at half of its TTL',
    'expiry: never before the TTL has passed',
    wrong((right) => ({
      async acquire(claim, call) {
        const outcome = await right.acquire({ ...claim, ttlMs: claim.ttlMs / 2 }, call)
        return outcome.kind === 'granted' ? { ...outcome, ttlMs: claim.ttlMs } : outcome
      },
    })),
  ],
  [
    'ignores minHoldMs',
    'expiry: a minimal hold is kept without its holder, and a renewal does not cut it',
    wrong((right) => ({ acquire: (claim, call) => right.acquire({ ...claim, minHoldMs: 0 }, call) })),
  ],
  [
    'ignores the floor of a claim',
    'fencing: no grant is below the floor that it was given',
    wrong((right) => ({
      acquire: (claim, call) => right.acquire({ ...claim, fenceFloor: 0n }, call),
    })),
  ],
  [
    'ignores the floor of a renewal',
    'fencing: a floor given on a renewal raises later grants, and not the lease itself',
    wrong((right) => ({
      renew: (held, call) => right.renew({ ...held, fenceFloor: 0n }, call),
    })),
  ],
  [
    'looks first and takes later',
    'contention: of many attempts at once exactly one is granted',
    wrong((right) => ({
      async acquire(claim, call) {
        if ((await right.inspect(claim.key, call)) !== null) return right.acquire(claim, call)
        // Some take longer than others: time enough for two to have seen a free key.
        for (let steps = claim.owner.charCodeAt(0) % 8; steps > 0; steps--) await null
        await right.revoke?.(claim.key, { force: true }, call)
        return right.acquire(claim, call)
      },
    })),
  ],
  [
    'acts although the call was cancelled',
    'cancellation: a call that is cancelled before it is made has no effect, and says so',
    wrong((right) => ({
      acquire: (claim) => right.acquire(claim, never),
    })),
  ],
  [
    'calls a cancelled renewal unknown',
    'cancellation: a call that is cancelled before it is made has no effect, and says so',
    wrong((right) => ({
      renew: (held, call) =>
        right.renew(held, call).catch((error: unknown) => {
          throw new StoreError('no answer', 'unknown', { cause: error })
        }),
    })),
  ],
  [
    'cannot be closed twice',
    'cancellation: a closed client answers nothing, closes twice, and disturbs no other',
    wrong((right) => {
      let closed = false
      return {
        async close() {
          if (closed) throw new Error('already closed')
          closed = true
          await right.close()
        },
      }
    }),
  ],
]
