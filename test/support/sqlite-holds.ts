import assert from 'node:assert/strict'
import type { CallOptions, HeldRef, Store } from '../../src/store.js'
import { claim } from './sqlite-actors.js'

export const call = (): CallOptions => ({ signal: new AbortController().signal })

/** A claim that lasts through a test, whoever dies. */
export const lasting = (over: Parameters<typeof claim>[0] = {}) =>
  claim({ life: 'outlives-process', ttlMs: 10_000, ...over })

export async function hold(store: Store, over = lasting()): Promise<HeldRef> {
  const outcome = await store.acquire(over, call())
  assert.ok(outcome.kind === 'granted')
  return { ...over, fence: outcome.fence }
}
