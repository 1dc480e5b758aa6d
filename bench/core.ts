import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Claim, createLeases, type Leases, type Store } from '../src/index.js'
import { memoryStore } from '../src/stores/memory.js'
import { medianOf } from './support/median.js'

export const summary =
  'what the core costs, on the memory store: CPU a lease, heap a held lease: [pairs, 20000] [rounds, 5]'

/** The goals: µs of CPU beyond the store's own at concurrency 1, and bytes of heap beyond the store's own. */
const GOAL_US = 10
const GOAL_BYTES = 2_048
const CONCURRENCY = [1, 16, 256, 2_048]
const HELD = 10_000

type Pair = (name: string) => Promise<unknown>

export async function run([pairs = '20000', rounds = '5']: readonly string[]): Promise<void> {
  const store = memoryStore()
  const leases = createLeases(store)
  const ways: Record<string, Pair> = {
    'the store alone': alone(store),
    'tryAcquire + release': async (name) => (await leases.tryAcquire(name))?.release(),
    'acquire + release': async (name) => (await leases.acquire(name)).release(),
    run: (name) => leases.run(name, () => {}),
  }
  console.log(`µs of CPU for each pair; ${rounds} rounds of ${pairs} pairs, interleaved; medians\n`)
  console.log(`${'in flight'.padEnd(24)}${CONCURRENCY.map((count) => String(count).padStart(8)).join('')}`)
  const costs = await measure(ways, Number(pairs), Number(rounds))
  for (const [name, row] of costs)
    console.log(`${name.padEnd(24)}${row.map((us) => us.toFixed(1).padStart(8)).join('')}`)
  const bytes = await heapOfHeld(store, leases)
  console.log(
    `\nheap of a held lease: ${bytes.all.toFixed(0)} bytes, of which the store's own are ${bytes.store.toFixed(0)}`,
  )
  await leases.close()

  const own = costs.get('the store alone')?.[0] ?? Number.NaN
  const worst = Math.max(...[...costs].map(([, row]) => (row[0] ?? Number.NaN) - own))
  const isMet = worst <= GOAL_US && bytes.all - bytes.store <= GOAL_BYTES
  console.log(
    `goal: the core adds at most ${GOAL_US} µs at concurrency 1, and ${GOAL_BYTES} bytes; it adds ${worst.toFixed(1)} µs ` +
      `and ${(bytes.all - bytes.store).toFixed(0)} bytes; goal met: ${isMet ? 'yes' : 'no'}`,
  )
  if (!isMet) process.exitCode = 1
}

/** The two calls that a lease takes, without a core. */
function alone(store: Store): Pair {
  const call = { signal: new AbortController().signal }
  return async (name) => {
    const claim = claimOn('default', name)
    await store.acquire(claim, call)
    await store.release(claim, call)
  }
}

const OWN_LIFE = { pids: [process.pid] }

function claimOn(namespace: string, name: string): Claim {
  return {
    key: { namespace, name },
    owner: 'whoever',
    ttlMs: 60_000,
    lockDelayMs: 0,
    minHoldMs: 0,
    fenceFloor: 0n,
    queue: true,
    label: 'bench',
    life: OWN_LIFE,
  }
}

/** By way, the median for each concurrency. One way after the other in every round: what disturbs one disturbs all. */
async function measure(ways: Record<string, Pair>, pairs: number, rounds: number): Promise<Map<string, number[]>> {
  const times = new Map(Object.keys(ways).map((name) => [name, CONCURRENCY.map(() => [] as number[])]))
  // The first round is for the compiler.
  for (let round = 0; round <= rounds; round++) {
    for (const [column, inFlight] of CONCURRENCY.entries()) {
      for (const [name, pair] of Object.entries(ways)) {
        const before = process.cpuUsage()
        await inParallel(pair, inFlight, Math.ceil(pairs / inFlight))
        const { user, system } = process.cpuUsage(before)
        if (round > 0) times.get(name)?.[column]?.push((user + system) / (inFlight * Math.ceil(pairs / inFlight)))
      }
    }
  }
  return new Map([...times].map(([name, columns]) => [name, columns.map((all) => medianOf(all).median)]))
}

async function inParallel(pair: Pair, inFlight: number, each: number): Promise<void> {
  await Promise.all(
    Array.from({ length: inFlight }, async (_, worker) => {
      for (let i = 0; i < each; i++) await pair(`job:${worker}`)
    }),
  )
}

async function heapOfHeld(store: Store, leases: Leases): Promise<{ readonly all: number; readonly store: number }> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heap = () => {
    collect()
    collect()
    return process.memoryUsage().heapUsed
  }
  const names = Array.from({ length: HELD }, (_, i) => `held:${i}`)
  const call = { signal: new AbortController().signal }
  const empty = heap()
  const watches = await Promise.all(
    names.map(async (name) => {
      const claim = claimOn('rows', name)
      await store.acquire(claim, call)
      return store.watch?.(claim, () => {}, call)
    }),
  )
  const withRows = heap()
  for (const watch of watches.splice(0)) watch?.close()
  for (const name of names) await store.release(claimOn('rows', name), call)
  const before = heap()
  const held = await Promise.all(names.map((name) => leases.acquire(name)))
  const after = heap()
  for (const lease of held) await lease.release()
  return { all: (after - before) / HELD, store: (withRows - empty) / HELD }
}
