export {
  type Clock,
  type Environment,
  type HostClock,
  type Random,
  sleep,
  systemEnvironment,
  type Timer,
} from './environment.js'
export {
  AcquireTimeoutError,
  LeaseError,
  LeaseLostError,
  StaleFenceError,
  StoreError,
  StoreUnavailableError,
  StoreUnsafeError,
} from './errors.js'
export type { LeaseEvent, LeaseEventType, Observe } from './events.js'
export type { Lease, ReleaseResult } from './lease.js'
export { createLeases, type Leases } from './leases.js'
export { type AcquireOptions, DEFAULTS, type LeasesOptions, type TryAcquireOptions } from './options.js'
export type * from './store.js'
