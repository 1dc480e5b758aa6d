import * as check from '../../checks.js'
import { createLeases, type Leases } from '../../leases.js'
import { DEFAULTS } from '../../options.js'
import type { Store } from '../../store.js'
import type { Parsed } from '../args.js'
import { asUsage } from '../as-usage.js'
import { openStore, type Target } from '../target/connect.js'

export function keyOf(parsed: Parsed): string {
  const key = parsed.positionals[0] ?? ''
  asUsage(() => check.key(key))
  return key
}

/** For commands that hold nothing themselves. */
export async function withLeases<T>(target: Target, work: (leases: Leases, store: Store) => Promise<T>): Promise<T> {
  const { namespace } = target
  const store = await openStore(target)
  // Only the time that one call may take depends on it; a store may know none so long.
  const ttlMs = Math.min(DEFAULTS.ttlMs, store.traits.ttlMaxMs)
  const leases = asUsage(() => createLeases(store, { ttlMs, ...(namespace !== undefined && { namespace }) }))
  try {
    return await work(leases, store)
  } finally {
    // Nothing is held here, so nothing can be left behind; the error of the work is the one that counts.
    await leases.close().catch(() => {})
  }
}
