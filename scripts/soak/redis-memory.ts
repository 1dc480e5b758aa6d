import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { redisStore } from '../../src/stores/redis.js'
import { complaints, manyKeys } from '../../test/support/redis-memory.js'
import { redisServer } from '../../test/support/servers/redis.js'

export const summary =
  'as many keys as asked, each acquired and released once on Redis: no memory grows (1000000: a few minutes)'

const HEAP_NOISE_BYTES = 8_000_000

export async function run([count = '1000000']: readonly string[]): Promise<void> {
  if (!globalThis.gc) {
    setFlagsFromString('--expose-gc')
    globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
  }
  const keys = Number(count)
  const server = await redisServer()
  const client = new Redis({ host: '127.0.0.1', port: server.port, lazyConnect: true })
  try {
    const growth = await manyKeys(server, redisStore(client, { trustRestart: true }), keys)
    const { before, after, tookMs } = growth
    console.log(`${keys} keys, acquired and released in ${(tookMs / 1000).toFixed(1)} s`)
    for (const what of Object.keys(before) as (keyof typeof before)[])
      console.log(`${what.padEnd(12)} before ${before[what]}, after ${after[what]} (${after[what] - before[what]})`)
    const found = complaints(growth, keys)
    if (after.heapBytes - before.heapBytes > HEAP_NOISE_BYTES)
      found.push(`${after.heapBytes - before.heapBytes} more bytes of heap`)
    if (found.length > 0) throw new Error(found.join('; '))
  } finally {
    client.disconnect()
    await server.end()
  }
}
