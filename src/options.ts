import { hostname } from 'node:os'
import * as check from './checks.js'
import { type Environment, systemEnvironment } from './environment.js'
import type { Observe, Observers } from './events.js'
import type { Life, Store, StoreTraits } from './store.js'
import { deadlineOf } from './validity.js'

/** Options of `createLeases`. Every one is checked on entry, with its relations; nothing is ever "fixed". */
export interface LeasesOptions {
  /** Leases of one namespace see each other. Default `'default'`. */
  readonly namespace?: string
  /** Length of a lease in ms, within the store's bounds. Default 10,000. */
  readonly ttlMs?: number
  /** Heartbeat in ms. Default a third of the TTL: two attempts fit before the deadline. */
  readonly renewEveryMs?: number
  /** The longest that one call to the store may take, in ms. Default a sixth of the TTL, at most 5,000. */
  readonly callTimeoutMs?: number
  /** How far the store's clock rate and ours may differ. Default 0.01. */
  readonly driftRatio?: number
  /** Timer granularity in ms. Default 2. */
  readonly marginMs?: number
  /**
   * The store keeps the lease this much longer than the holder believes, in ms: covers writes in flight at resources
   * that cannot check a fence. Default 0. A release while held frees at once all the same.
   */
  readonly lockDelayMs?: number
  /** The first fence, when moving here from another kind of store. Default `0n`. */
  readonly fenceFloor?: bigint
  /** Who we are, for people. Default `hostname:pid`. */
  readonly label?: string
  /** Called with every event of these leases; `Leases.observe` adds others later. */
  readonly observe?: Observe
  /** Clock and randomness. Default the real ones. */
  readonly environment?: Environment
}

/** What one acquisition may ask for. */
export interface TryAcquireOptions {
  readonly ttlMs?: number
  /** Cancels at once; the promise rejects with `signal.reason`. */
  readonly signal?: AbortSignal
  readonly label?: string
  /** `false`: no heartbeat of its own; call `renew()`. Default `true`. */
  readonly heartbeat?: boolean
  /** The key stays taken at least this long in ms, even if released earlier or if the holder dies. Default 0. */
  readonly minHoldMs?: number
  /** The lease is lost with reason `max-hold` after this long, in ms. Default: never. */
  readonly maxHoldMs?: number
  /**
   * Whose death ends the lease early, on stores that can see it. Default this process. `outlives-process` for work
   * that goes on without it. The dangerous case: children that go on working after this process has died.
   */
  readonly life?: Life
}

export interface AcquireOptions extends TryAcquireOptions {
  /** The longest wait for its turn in ms; `0` asks once. Default `Infinity`. */
  readonly waitMs?: number
}

/** Every default in one place, with its reason. */
export const DEFAULTS = {
  namespace: 'default',
  /** Long against a garbage collection or a failover's hiccup, short against a person's patience. */
  ttlMs: 10_000,
  renewEveryMs: (ttlMs: number) => Math.floor(ttlMs / 3),
  callTimeoutMs: (ttlMs: number) => Math.min(Math.floor(ttlMs / 6), 5_000),
  /** Oscillators err by 0.01 %, NTP slews by 0.05 %: this is 20 times as much, for both sides together. */
  driftRatio: 0.01,
  marginMs: 2,
  lockDelayMs: 0,
  fenceFloor: 0n,
  label: () => `${hostname()}:${process.pid}`,
} as const

/** Node's timers fire at once beyond this. */
export const MAX_MS = 2 ** 31 - 1
/** Fences fit a signed 64-bit column everywhere; a floor leaves room above itself. */
const MAX_FENCE_FLOOR = 2n ** 62n

const LEASES_OPTIONS = [
  'namespace',
  'ttlMs',
  'renewEveryMs',
  'callTimeoutMs',
  'driftRatio',
  'marginMs',
  'lockDelayMs',
  'fenceFloor',
  'label',
  'observe',
  'environment',
]
const TRY_OPTIONS = ['ttlMs', 'signal', 'label', 'heartbeat', 'minHoldMs', 'maxHoldMs', 'life']
const ACQUIRE_OPTIONS = [...TRY_OPTIONS, 'waitMs']
const OWN_LIFE: Life = { pids: [process.pid] }

export interface Settings {
  readonly namespace: string
  readonly ttlMs: number
  readonly renewEveryMs: number
  readonly callTimeoutMs: number
  readonly driftRatio: number
  readonly marginMs: number
  readonly lockDelayMs: number
  readonly fenceFloor: bigint
  readonly label: string
  readonly observers: Observers
  readonly environment: Environment
}

/** What one acquisition goes by: the settings with its own wishes in their place. */
export interface Wish extends Settings {
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  readonly heartbeat: boolean
  readonly minHoldMs: number
  readonly maxHoldMs: number | undefined
  readonly life: Life
}

export function resolveSettings(store: Store, given: LeasesOptions, observers: Observers): Settings {
  check.store('store', store)
  check.known('createLeases', given, LEASES_OPTIONS)
  const ttlMs = or(given.ttlMs, DEFAULTS.ttlMs)
  check.length('ttlMs', ttlMs, MAX_MS)
  const settings: Settings = {
    namespace: or(given.namespace, DEFAULTS.namespace),
    ttlMs,
    renewEveryMs: or(given.renewEveryMs, DEFAULTS.renewEveryMs(ttlMs)),
    callTimeoutMs: or(given.callTimeoutMs, DEFAULTS.callTimeoutMs(ttlMs)),
    driftRatio: or(given.driftRatio, DEFAULTS.driftRatio),
    marginMs: or(given.marginMs, DEFAULTS.marginMs),
    lockDelayMs: or(given.lockDelayMs, DEFAULTS.lockDelayMs),
    fenceFloor: or(given.fenceFloor, DEFAULTS.fenceFloor),
    label: or(given.label, DEFAULTS.label()),
    observers,
    environment: or(given.environment, systemEnvironment()),
  }
  check.text('namespace', settings.namespace, 255)
  check.text('label', settings.label, 255)
  check.ratio('driftRatio', settings.driftRatio)
  check.duration('marginMs', settings.marginMs, MAX_MS)
  check.duration('lockDelayMs', settings.lockDelayMs, MAX_MS)
  check.fence('fenceFloor', settings.fenceFloor, MAX_FENCE_FLOOR)
  if (given.observe !== undefined) check.callable('observe', given.observe)
  check.environment('environment', settings.environment)
  check.length('renewEveryMs', settings.renewEveryMs, MAX_MS)
  check.length('callTimeoutMs', settings.callTimeoutMs, MAX_MS)
  checkRelations(settings, store)
  return Object.freeze(settings)
}

/** A `tryAcquire`, or an `acquire` (or `run`). */
export type Way = 'tries' | 'waits'

/** The wishes of one `Leases`. Those without options of their own, which most are, are resolved once. */
export class Wishes {
  readonly #store: Store
  readonly #settings: Settings
  readonly #base: LeasesOptions
  readonly #plain: { [way in Way]?: Wish } = {}

  constructor(store: Store, settings: Settings, base: LeasesOptions) {
    this.#store = store
    this.#settings = settings
    this.#base = { ...base }
  }

  of(given: AcquireOptions | undefined, way: Way): Wish {
    if (given !== undefined) return resolveWish(this.#store, this.#settings, given, this.#base, way)
    this.#plain[way] ??= this.of({}, way)
    return this.#plain[way]
  }
}

function resolveWish(store: Store, settings: Settings, given: AcquireOptions, base: LeasesOptions, way: Way): Wish {
  const waits = way === 'waits'
  check.known(waits ? 'acquire' : 'tryAcquire', given, waits ? ACQUIRE_OPTIONS : TRY_OPTIONS)
  const ttlMs = or(given.ttlMs, settings.ttlMs)
  check.length('ttlMs', ttlMs, MAX_MS)
  const wish: Wish = {
    ...settings,
    ttlMs,
    renewEveryMs: or(base.renewEveryMs, DEFAULTS.renewEveryMs(ttlMs)),
    callTimeoutMs: or(base.callTimeoutMs, DEFAULTS.callTimeoutMs(ttlMs)),
    label: or(given.label, settings.label),
    waitMs: waits ? or(given.waitMs, Number.POSITIVE_INFINITY) : 0,
    signal: given.signal,
    heartbeat: or(given.heartbeat, true),
    minHoldMs: or(given.minHoldMs, 0),
    maxHoldMs: given.maxHoldMs,
    life: or(given.life, OWN_LIFE),
  }
  check.text('label', wish.label, 255)
  if (wish.waitMs !== Number.POSITIVE_INFINITY) check.duration('waitMs', wish.waitMs, MAX_MS, 0, ', or Infinity')
  if (wish.signal !== undefined) check.abortSignal('signal', wish.signal)
  check.boolean('heartbeat', wish.heartbeat)
  check.duration('minHoldMs', wish.minHoldMs, MAX_MS)
  if (wish.maxHoldMs !== undefined) check.length('maxHoldMs', wish.maxHoldMs, MAX_MS)
  checkRelations(wish, store)
  if (wish.minHoldMs > 0) requireTrait(store, 'lockDelay', 'minHoldMs')
  return { ...wish, life: resolveLife(store, wish, wish.life) }
}

/** What must stay taken after its holder's death is not freed because of that death. */
export function resolveLife(store: Store, { lockDelayMs, minHoldMs }: LifeLimits, life: Life): Life {
  check.life('life', life)
  if (life === 'outlives-process') requireTrait(store, 'detachable', 'life: "outlives-process"')
  return lockDelayMs > 0 || minHoldMs > 0 ? 'outlives-process' : life
}

interface LifeLimits {
  readonly lockDelayMs: number
  readonly minHoldMs: number
}

/** Only what is left out has a default: `null` is a mistake, and told so. */
const or = <T>(value: T | undefined, fallback: T): T => (value === undefined ? fallback : value)

function checkRelations(s: Settings, store: Store): void {
  const { ttlMinMs, ttlMaxMs } = store.traits
  if (s.ttlMs < ttlMinMs || s.ttlMs + s.lockDelayMs > ttlMaxMs) {
    throw new RangeError(
      `ttlMs (with lockDelayMs) must lie between ${ttlMinMs} and ${ttlMaxMs} on ${store.name}, but got ${s.ttlMs}` +
        (s.lockDelayMs > 0 ? ` + ${s.lockDelayMs}` : ''),
    )
  }
  const span = deadlineOf(0, s.ttlMs, s)
  if (s.renewEveryMs + s.callTimeoutMs >= span) {
    throw new RangeError(
      `renewEveryMs + callTimeoutMs must end before the deadline (${span} ms for a ttlMs of ${s.ttlMs}), ` +
        `but got ${s.renewEveryMs} + ${s.callTimeoutMs}`,
    )
  }
  if (s.lockDelayMs > 0) requireTrait(store, 'lockDelay', 'lockDelayMs')
  if (s.fenceFloor > 0n) requireTrait(store, 'fenceFloor', 'fenceFloor')
}

function requireTrait(store: Store, trait: keyof StoreTraits, option: string): void {
  if (!store.traits[trait])
    throw new RangeError(`${option} is not possible on ${store.name} (its trait ${trait} is false)`)
}
