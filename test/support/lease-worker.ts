/**
 * A process that uses the library as an application would: acquires one key, and tells on stdout, with the host's clock,
 * when it began to believe that it holds, and when it stopped. Ends when its stdin does.
 */
import { createLeases, systemEnvironment } from '../../src/index.js'
import { sqliteStore } from '../../src/stores/sqlite.js'

const [path = '', key = '', ttlMs = '0', lockDelayMs = '0', acquire = 'wait'] = process.argv.slice(2)
const { clock, host } = systemEnvironment()
const tell = (event: string, facts: object = {}) =>
  process.stdout.write(`${JSON.stringify({ event, at: host.now(), wall: clock.wall(), ...facts })}\n`)

process.stdin.resume().on('end', () => process.exit(0))
const leases = createLeases(sqliteStore({ path }), { ttlMs: Number(ttlMs), lockDelayMs: Number(lockDelayMs) })
tell('started', { clock: host.identity })
// A contender that comes and goes asks once; others wait.
const lease = acquire === 'once' ? await leases.tryAcquire(key) : await leases.acquire(key)
if (lease === null) {
  tell('refused')
  process.exit(75)
}
tell('held', { fence: String(lease.fence) })
lease.signal.addEventListener('abort', () => tell('lost', { reason: lease.signal.reason.reason }))
// To be asked for the time and for what it believes now: how others find out what a fake clock does to it.
process.stdin.on('data', () => tell('now', { held: lease.held, remainingMs: lease.remainingMs }))
