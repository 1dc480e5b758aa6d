/** Acquires keys on Redis, says so, and is killed. `node redis-abandons.js PORT TTL COUNT` */
import { Redis } from 'ioredis'
import { createLeases } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis.js'

const [port = 0, ttlMs = 0, count = 0] = process.argv.slice(2).map(Number)
const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true })
const leases = createLeases(redisStore(client, { trustRestart: true }), { ttlMs })
for (let n = 0; n < count; n += 100)
  await Promise.all(Array.from({ length: 100 }, (_, i) => leases.acquire(`abandoned ${n + i}`)))
process.stdout.write('held\n')
setInterval(() => {}, 60_000)
