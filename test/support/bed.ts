/** What most tests of the core need: a memory server, a client of it to which faults happen, and virtual time. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { type FaultyStore, faultyStore } from '../../src/faults/index.js'
import { createLeases, type LeaseEvent, type Leases, type LeasesOptions } from '../../src/index.js'
import { type VirtualEnvironment, virtualEnvironment } from '../../src/simulation/index.js'
import { type MemoryServer, memoryServer } from '../../src/stores/memory.js'

export interface Bed {
  readonly env: VirtualEnvironment
  readonly server: MemoryServer
  /** Over the faulty store. */
  readonly leases: Leases
  readonly store: FaultyStore
  /** Of somebody else, with a connection of its own that always works. */
  readonly others: Leases
  /** Everything that `leases` told its observer. */
  readonly events: LeaseEvent[]
  advance(ms: number): Promise<void>
  runUntil<T>(work: Promise<T>, limitMs?: number): Promise<T>
  /** The owner that the server has for a key of the default namespace; null when it is free. */
  ownerOf(key: string): string | null
  /** Closes everything, and checks that nothing goes on after that. */
  end(): Promise<void>
}

/** TTL 1 s: a heartbeat each 333 ms, 166 ms for a call, the deadline 988 ms after each send. */
export function bed(options: LeasesOptions = {}, seed: string | number = 1): Bed {
  const env = virtualEnvironment(seed)
  const server = memoryServer({ environment: env })
  const store = faultyStore(server.connect(), { clock: env.clock })
  const events: LeaseEvent[] = []
  const observe = (event: LeaseEvent) => void events.push(event)
  const leases = createLeases(store, { ttlMs: 1000, label: 'we', observe, ...options, environment: env })
  const others = createLeases(server.connect(), { ttlMs: 1000, ...options, label: 'others', environment: env })
  return {
    env,
    server,
    leases,
    store,
    others,
    events,
    advance: (ms) => env.advance(ms),
    runUntil: (work, limitMs) => env.runUntil(work, limitMs),
    ownerOf: (key) => server.truth({ namespace: options.namespace ?? 'default', name: key })?.owner ?? null,
    async end() {
      store.heal()
      await env.runUntil(Promise.allSettled([leases.close(), others.close()]))
      await env.advance(60_000)
      assert.equal(env.clock.pendingTimers, 0, 'timers were left behind')
    },
  }
}

/** A test on a bed of its own, which must be clean when the test has ended. */
export function onBed(name: string, body: (bed: Bed) => Promise<void>, options: LeasesOptions = {}): void {
  test(name, async () => {
    const here = bed(options)
    await body(here)
    await here.end()
  })
}

/** How a promise stands, without waiting for it: look after time has passed. */
export function settling<T>(work: Promise<T>): {
  state: 'pending' | 'resolved' | 'rejected'
  value?: T
  error?: unknown
} {
  const seen: ReturnType<typeof settling<T>> = { state: 'pending' }
  work.then(
    (value) => Object.assign(seen, { state: 'resolved', value }),
    (error) => Object.assign(seen, { state: 'rejected', error }),
  )
  return seen
}
