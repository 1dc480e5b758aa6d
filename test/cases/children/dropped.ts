/** Drops promises of this library on the floor, and prints which rejections nobody handled. */
import { faultyStore } from '../../../src/faults/index.js'
import { createLeases } from '../../../src/index.js'
import { memoryStore } from '../../../src/stores/memory.js'

const unhandled: string[] = []
process.on('unhandledRejection', (error) => unhandled.push((error as { code?: string }).code ?? String(error)))
process.on('exit', () => console.log(JSON.stringify(unhandled)))

const store = faultyStore(memoryStore())
const leases = createLeases(store, { ttlMs: 300 })
const lease = await leases.acquire('k')
const cancel = new AbortController()
const reason = new Error('cancelled')
// A caller who drops a promise gets its rejection, and no other one.
if (process.argv[2] === 'acquire') {
  void leases.acquire('k', { waitMs: 50 })
  setTimeout(() => void lease.release(), 400)
}
// Everything else here is handled by its caller, so nothing must be left.
if (process.argv[2] === 'loss') {
  const cancelled = leases.acquire('k', { signal: cancel.signal }).catch(() => {})
  store.fail('unknown')
  setTimeout(() => cancel.abort(reason), 100)
  setTimeout(() => store.hang(), 200)
  setTimeout(() => store.heal(), 900)
  await cancelled
}
