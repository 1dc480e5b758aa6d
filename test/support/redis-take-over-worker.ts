/** Acquires the key `key` as an application would, and tells when it believes to hold it. Ends when its stdin does. */
import { Redis } from 'ioredis'
import { createLeases, systemEnvironment } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'

const [port, ttlMs] = process.argv.slice(2).map(Number)
const { host } = systemEnvironment()
const tell = (event: string) => process.stdout.write(`${JSON.stringify({ event, at: host.now() })}\n`)

process.stdin.resume().on('end', () => process.exit(0))
const client = new Redis({ host: '127.0.0.1', port: port ?? 0, lazyConnect: true })
const leases = createLeases(redisStore(client, { maxTtlMs: ttlMs ?? 0 }), { ttlMs: ttlMs ?? 0 })
tell('started')
await leases.acquire('key')
tell('held')
