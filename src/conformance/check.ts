import type { Store } from '../store.js'
import type { Bench } from './bench.js'
import type { Harness } from './harness.js'

/**
 * One property of a store. A check fails for its own property only: where it needs another one on its way (a lease
 * that has expired, say) and does not find it, it stops there, since the check of that property says so.
 */
export interface Check {
  readonly name: string
  /** Whether the store, by what it declares, can have this property at all. */
  readonly applies?: (store: Store, harness: Harness) => boolean
  readonly run: (bench: Bench) => Promise<void>
}
