/** Ends, in the way that its first argument names, while it holds a lease or has just let go of one. */
import { faultyStore } from '../../../src/faults/index.js'
import { createLeases } from '../../../src/index.js'
import { memoryStore } from '../../../src/stores/memory.js'

const [how] = process.argv.slice(2)
const store = faultyStore(memoryStore())
const leases = createLeases(store, {
  ttlMs: 60_000,
  ...(how === 'released during a renewal' && { ttlMs: 1000, renewEveryMs: 50 }),
})

if (how === 'process.exit while held') {
  await leases.acquire('k')
  process.exit(0)
}
if (how === 'held to the last statement' || how === 'dropped') {
  let lease: unknown = await leases.acquire('k')
  if (how === 'dropped') lease = null
  if (lease) console.log('held')
}
if (how === 'released') {
  const lease = await leases.acquire('k')
  console.log(await lease.release())
}
if (how === 'released during a renewal') {
  store.delayReplies(120, 'renew')
  const result = leases.run('k', async () => {
    while (store.count('renew') === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    return 'done'
  })
  console.log(await result, store.count('renew'))
}
if (how === 'waited for in vain') {
  await leases.acquire('k')
  await leases.acquire('k', { waitMs: 100 }).catch((error) => console.log(error.code))
}
