import type { Claim } from '../../src/store.js'

/** A claim with nothing special about it. */
export const plainClaim = (owner: string, over: Partial<Claim> = {}): Claim => ({
  key: { namespace: 'default', name: 'k' },
  owner,
  ttlMs: 1000,
  lockDelayMs: 0,
  minHoldMs: 0,
  fenceFloor: 0n,
  queue: false,
  life: 'outlives-process',
  ...over,
})
