/** What the store promises to callers of the seam. */
import type { StoreTraits } from '../../store.js'
import { MAX_TTL_MS } from './options.js'

export const traitsOf = ({ maxTtlMs }: { readonly maxTtlMs: number }): StoreTraits => ({
  fencing: 'volatile',
  fenceFloor: true,
  expiry: 'server-clock',
  revoke: 'refuses-renewal',
  order: 'none',
  wakeup: 'notify',
  scope: 'network',
  lockDelay: true,
  detachable: true,
  listsNames: true,
  ttlMinMs: 50,
  ttlMaxMs: maxTtlMs,
  ttlGranularityMs: 1,
})

/** What a store of the default settings declares. */
export const redisTraits: StoreTraits = traitsOf({ maxTtlMs: MAX_TTL_MS.default })
