/**
 * Does anything stay behind? Acquires and releases, loses leases, uses many keys, and compares heap, listeners, timers, files
 * and rows with what they were before. Needs `--expose-gc`.
 */
import { getEventListeners } from 'node:events'
import { readdirSync } from 'node:fs'
import { type FaultyStore, faultyStore } from '../../src/faults/index.js'
import { createLeases, type Leases, type Store } from '../../src/index.js'

export interface Load {
  readonly cycles: number
  readonly lost: number
  /** Distinct keys, each acquired and released once. */
  readonly keys: number
  /** Attempts that fail because another holds the key. */
  readonly refused: number
}

export interface Growth {
  readonly after: string
  readonly heapBytes: number
  readonly listeners: number
  readonly resources: number
  readonly files: number
  readonly rows: number
}

const TTL_MS = 500

export async function growth(store: Store, load: Load, say: (line: string) => void = () => {}): Promise<Growth[]> {
  const faulty = faultyStore(store)
  const leases = createLeases(faulty, { ttlMs: 60_000 })
  const short = createLeases(faulty, { ttlMs: TTL_MS })
  const signal = new AbortController().signal
  const parts: [string, number, (n: number) => Promise<void>][] = [
    ['cycles of acquire and release', load.cycles, (n) => cycles(leases, signal, n)],
    ['distinct keys', load.keys, (n) => distinctKeys(leases, signal, n)],
    ['refused attempts', load.refused, (n) => refused(leases, signal, n)],
    ['lost leases', load.lost, (n) => lost(short, faulty, signal, n)],
  ]
  const found: Growth[] = []
  for (const [what, times, part] of parts) {
    // A little of it first, for what is made on first use.
    await part(Math.ceil(times / 20))
    const before = await footprint(leases, signal)
    const began = performance.now()
    await part(times)
    const ms = Math.round(performance.now() - began)
    const now = await footprint(leases, signal)
    const grown = {
      after: `${times} ${what}`,
      heapBytes: now.heapBytes - before.heapBytes,
      listeners: now.listeners - before.listeners,
      resources: now.resources - before.resources,
      files: now.files - before.files,
      rows: now.rows - before.rows,
    }
    found.push(grown)
    say(`${JSON.stringify(grown)} in ${ms} ms`)
  }
  await short.close()
  await leases.close()
  return found
}

/** A key that is kept costs some 100 bytes at least; 30,000 of them could not hide in this. */
const HEAP_NOISE = 1_500_000

export function complaints(grown: readonly Growth[]): string[] {
  return grown.flatMap(({ after, heapBytes, ...counts }) => {
    const more = Object.entries(counts).flatMap(([what, n]) => (n > 0 ? [`${n} more ${what}`] : []))
    if (heapBytes > HEAP_NOISE) more.push(`${heapBytes} more bytes of heap`)
    return more.map((each) => `${each} after ${after}`)
  })
}

async function cycles(leases: Leases, signal: AbortSignal, n: number): Promise<void> {
  for (let i = 0; i < n; i++) {
    const lease = await leases.acquire('k', { signal })
    await lease.release()
  }
}

async function distinctKeys(leases: Leases, signal: AbortSignal, n: number): Promise<void> {
  for (let i = 0; i < n; i++) {
    const lease = await leases.acquire(`key ${i} of ${n}`, { signal })
    await lease.release()
  }
}

async function refused(leases: Leases, signal: AbortSignal, n: number): Promise<void> {
  const lease = await leases.acquire('k')
  for (let i = 0; i < n; i++) {
    if (i % 100 === 0) await leases.acquire('k', { waitMs: 3, signal }).catch(() => {})
    else await leases.tryAcquire('k', { signal })
  }
  await lease.release()
}

/** All at once: the store hangs until the last one is lost, then heals, and the clean-up after each comes through. */
async function lost(leases: Leases, store: FaultyStore, signal: AbortSignal, n: number): Promise<void> {
  const held = []
  for (let i = 0; i < n; i++) held.push(await leases.acquire(`lost ${i}`, { signal, heartbeat: false }))
  const told = held.map(
    (lease) => new Promise((resolve) => (lease.held ? lease.signal.addEventListener('abort', resolve) : resolve(0))),
  )
  store.hang()
  // The timers of a lease do not keep a process running.
  const running = setInterval(() => {}, 1000)
  await Promise.all(told)
  clearInterval(running)
  store.heal()
  await Promise.all(held.map((lease) => lease.release()))
}

async function footprint(leases: Leases, signal: AbortSignal): Promise<Omit<Growth, 'after'>> {
  // What is on its way out (time-outs, retries of releases) is not a leak.
  await new Promise((resolve) => setTimeout(resolve, TTL_MS / 2))
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  let rows = 0
  for await (const _ of leases.list()) rows++
  return {
    heapBytes: process.memoryUsage().heapUsed,
    listeners: getEventListeners(signal, 'abort').length,
    resources: process.getActiveResourcesInfo().length,
    files: process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0,
    rows,
  }
}
