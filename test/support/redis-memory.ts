/** Does a Redis server remember keys that nobody holds any more? Acquires and releases many, each once. */
import { createLeases, type Store } from '../../src/index.js'
import type { RedisServer } from './servers/redis.js'

export interface MemoryUse {
  /** Of the server. */
  readonly usedBytes: number
  readonly keys: number
  readonly scripts: number
  readonly scriptBytes: number
  /** Of this process; needs `--expose-gc` to be worth anything. */
  readonly heapBytes: number
}

export interface Growth {
  readonly before: MemoryUse
  readonly after: MemoryUse
  readonly tookMs: number
}

const AT_ONCE = 256
/** What is made on first use: scripts, buffers, compiled code. */
const FIRST = 2_000

/** Closes the store. */
export async function manyKeys(server: RedisServer, store: Store, keys: number): Promise<Growth> {
  const leases = createLeases(store, { ttlMs: 10_000 })
  let next = 0
  const work = async (upTo: number) => {
    while (next < upTo) {
      const lease = await leases.acquire(`job:${next++}:of a name that is long enough to be seen`)
      if ((await lease.release()) !== 'released') throw new Error(`${lease.key} was not released`)
    }
  }
  const all = (upTo: number) => Promise.all(Array.from({ length: AT_ONCE }, () => work(upTo)))
  await all(FIRST)
  const before = await memoryUse(server)
  const began = performance.now()
  await all(FIRST + keys)
  const tookMs = performance.now() - began
  const after = await memoryUse(server)
  await leases.close()
  return { before, after, tookMs }
}

async function memoryUse(server: RedisServer): Promise<MemoryUse> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const info = `${await server.send('INFO', 'memory')}`
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return {
    usedBytes: field('used_memory'),
    keys: Number(await server.send('DBSIZE')),
    scripts: field('number_of_cached_scripts'),
    scriptBytes: field('used_memory_scripts_eval'),
    heapBytes: process.memoryUsage().heapUsed,
  }
}

/** A key that is remembered costs the server some 60 bytes at the least; what else it does takes up to 400 kB (measured with a million keys). */
const BYTES_FOR_EACH_KEY = 20
const NOISE_BYTES = 1_000_000

export function complaints({ before, after }: Growth, keys: number): string[] {
  const allowed = Math.min(NOISE_BYTES, keys * BYTES_FOR_EACH_KEY)
  const found: string[] = []
  const grown = (what: keyof MemoryUse, limit: number) => {
    const more = after[what] - before[what]
    if (!(more <= limit)) found.push(`${more} more of ${what} after ${keys} keys`)
  }
  grown('usedBytes', allowed)
  grown('keys', 0)
  grown('scripts', 0)
  grown('scriptBytes', 0)
  return found
}
