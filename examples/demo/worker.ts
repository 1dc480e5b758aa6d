/** One of the demo's workers: waits for the lease, works for a while, writes its result behind a fence. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { createLeases, StaleFenceError } from 'holdfast'
import { sqliteGuard } from 'holdfast/fencing'
import { sqliteStore } from 'holdfast/sqlite'

const [name = 'worker', folder = '.'] = process.argv.slice(2)
const tell = (event: string, facts: object = {}) => process.send?.({ event, ...facts })

const ledger = new Database(join(folder, 'ledger.db'))
ledger.exec('CREATE TABLE IF NOT EXISTS reports (worker TEXT)')
const guard = sqliteGuard(ledger, { resource: 'reports' })

const leases = createLeases(sqliteStore({ path: join(folder, 'leases.db') }), {
  ttlMs: 2000,
  label: name,
  observe: (event) => {
    if (event.type === 'attempt' && event.outcome === 'held' && event.attempt === 1) tell('waiting')
  },
})

const lease = await leases.acquire('nightly-report')
tell('acquired', { fence: String(lease.fence) })
lease.signal.addEventListener('abort', () => tell('lost'))
guard.advance(lease)

// The work. A careful worker would stop when the signal aborts; this one shows what happens to one that does not.
await sleep(name === 'bob' || name === 'dave' ? 1000 : 3000)

try {
  guard.write(lease, () => ledger.prepare('INSERT INTO reports VALUES (?)').run(name))
  tell('wrote', { fence: String(lease.fence) })
  await lease.release()
} catch (error) {
  if (!(error instanceof StaleFenceError)) throw error
  tell('refused', { error: error.message })
}
