import type { CallOptions, Claim, Store } from '../../src/store.js'
import type { Clients } from './collect.js'
import { remember, wrong } from './wrong-stores.js'

const never: CallOptions = { signal: new AbortController().signal }

/** By what is wrong with it: a store for each property beside the leases themselves. */
export const wrongAboutTheRest: readonly [fault: string, check: string, clients: Clients][] = [
  [
    'gives up all keys of a client with one',
    'isolation: the leases of one client share no fate',
    wrong((right) => {
      const mine: Claim[] = []
      return {
        async acquire(claim, call) {
          const outcome = await right.acquire(claim, call)
          if (outcome.kind === 'granted') mine.push(claim)
          return outcome
        },
        async release(ref, call) {
          const outcome = await right.release(ref, call)
          for (const other of mine.splice(0)) await right.release(other, never)
          return outcome
        },
      }
    }),
  ],
  [
    'cuts names at a NUL',
    'names: every well-formed name up to 1,024 bytes can be held, renewed, seen and released',
    wrong((right) => ({
      async inspect(key, call) {
        const holding = await right.inspect(key, call)
        return holding && { ...holding, key: holding.key.split('\u0000')[0] ?? '' }
      },
    })),
  ],
  [
    'trims namespaces',
    'names: every well-formed namespace is as good as another',
    wrong((right) => ({
      async inspect(key, call) {
        const holding = await right.inspect(key, call)
        return holding && { ...holding, namespace: holding.namespace.trim() }
      },
    })),
  ],
  [
    'revokes in words only',
    'revoke: plain refuses renewals, and the key stays taken until its holder lets go',
    wrong((right) => ({
      revoke: async (key, how, call) => {
        if (how.force) return right.revoke?.(key, how, call) ?? { kind: 'absent' }
        return { kind: (await right.inspect(key, call)) ? 'refusing' : 'absent' }
      },
    })),
  ],
  [
    'takes no key away by force',
    'revoke: force frees the key at once',
    wrong((right) => ({
      revoke: async (key, how, call) => {
        if (!how.force) return right.revoke?.(key, how, call) ?? { kind: 'absent' }
        return { kind: (await right.inspect(key, call)) ? 'freed' : 'absent' }
      },
    })),
  ],
  [
    'revokes what nobody holds',
    'revoke: of a free key is absent, and leaves nothing behind',
    wrong((right) => ({
      revoke: async (key, how, call) => {
        const outcome = (await right.revoke?.(key, how, call)) ?? { kind: 'absent' as const }
        return outcome.kind === 'absent' ? { kind: how.force ? 'freed' : 'refusing' } : outcome
      },
    })),
  ],
  [
    'lists in the order of grants',
    'list: everything held in the namespace, in the order of names, and nothing else',
    wrong((right) => ({
      async *list(namespace, prefix, call) {
        const all = []
        for await (const holding of right.list?.(namespace, prefix, call) ?? []) all.push(holding)
        yield* all.sort((a, b) => Number(a.fence - b.fence))
      },
    })),
  ],
  [
    'reads a prefix as a pattern',
    'list: a prefix is a prefix, not a pattern',
    wrong((right) => ({
      async *list(namespace, prefix, call) {
        const pattern = new RegExp(
          `^${prefix.replaceAll('\\', '\\\\').replaceAll('[', '\\[').replaceAll('*', '.*').replaceAll('?', '.')}`,
        )
        for await (const holding of right.list?.(namespace, '', call) ?? [])
          if (pattern.test(holding.key)) yield holding
      },
    })),
  ],
  [
    'promises hints and never gives one',
    'watch: those who wait hear of a release through another client',
    wrong(() => ({ watch: async () => ({ close() {} }) })),
  ],
  [
    'gives hints after the watch was closed',
    'watch: is silent once closed, and does not hold up its client',
    wrong((right) => ({
      async watch(ref, onHint, call) {
        await right.watch?.(ref, onHint, call)
        return { close() {} }
      },
    })),
  ],
  [
    'promises a place in a line that it has not',
    'order: a store without a line leaves no place in it',
    wrong((right) => ({
      async acquire(claim, call) {
        const outcome = await right.acquire(claim, call)
        return outcome.kind === 'held' ? { ...outcome, queued: claim.queue } : outcome
      },
    })),
  ],
  [
    'promises lists and has none',
    'traits: what is declared has the members that it takes',
    wrong((right) => {
      const { list: _, ...bare } = right
      return { ...bare, list: undefined } as unknown as Partial<Store>
    }),
  ],
  [
    'declares a trait that there is not',
    'traits: every trait is declared, with a value that it can have',
    wrong((right) => ({
      traits: { ...right.traits, scope: 'galaxy' as unknown as 'network' },
    })),
  ],
  [
    'grants longer than it says it can',
    'traits: the granted TTL keeps to the bounds and steps that are declared',
    wrong((right) => ({
      traits: { ...right.traits, ttlMaxMs: 1_000 },
      async acquire(claim, call) {
        const outcome = await right.acquire(claim, call)
        return outcome.kind === 'granted'
          ? { ...outcome, ttlMs: outcome.ttlMs === 1_000 ? 1_001 : outcome.ttlMs }
          : outcome
      },
    })),
  ],
  [
    'names itself differently to each client',
    'traits: a probe tells every client the same, and nothing weaker than was declared',
    wrong((right, memo) => ({
      async probe(call) {
        memo.set(`probe ${memo.size}`, {} as Claim & { fence: bigint })
        return { ...(await right.probe(call)), id: `memory ${memo.size}` }
      },
    })),
  ],
  [
    'is weaker than it declares',
    'traits: a probe tells every client the same, and nothing weaker than was declared',
    wrong((right) => ({ traits: { ...right.traits, fencing: 'durable' } })),
  ],
  [
    'holds a lease against its own owner',
    'ambiguity: an acquire without an answer can be asked again by the same owner',
    wrong((right, memo) => ({
      async acquire(claim, call) {
        const isKnown = memo.has(claim.owner) && (await right.inspect(claim.key, call)) !== null
        if (isKnown) return { kind: 'held', queued: false }
        return remember(right, memo, ({ owner }) => owner)(claim, call)
      },
    })),
  ],
  [
    'wants each renewal to be answered before the next (B198)',
    'ambiguity: a renewal without an answer is no loss (B198)',
    wrong((right, memo) => ({
      async renew(held, call) {
        const outcome = await right.renew(held, call)
        // The reply that the suite loses is the first one; this one cannot tell that the second question is its own.
        const isSecond = memo.has(held.owner)
        memo.set(held.owner, held)
        return isSecond && outcome.kind === 'renewed' ? { kind: 'lost', reason: 'taken' } : outcome
      },
    })),
  ],
  [
    'frees nothing on a release',
    'ambiguity: an acquire without an answer can be given back (B060, B173)',
    wrong((right) => ({
      release: async (ref, call) => ({ kind: (await right.inspect(ref.key, call)) ? 'released' : 'absent' }),
    })),
  ],
]
