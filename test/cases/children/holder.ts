/**
 * A process that holds one lease, TTL 1 s, while something happens to it (the first argument), and ends by itself.
 * With a second argument the store is that SQLite file, else memory. Prints one line of JSON: how it was told.
 */
import { performance } from 'node:perf_hooks'
import { faultyStore } from '../../../src/faults/index.js'
import { createLeases, LeaseLostError, type Store, sleep, systemEnvironment } from '../../../src/index.js'
import { memoryStore } from '../../../src/stores/memory.js'

const [what = '', path] = process.argv.slice(2)
const open = async (): Promise<Store> => {
  if (path === undefined) return memoryStore()
  const { sqliteStore } = await import('../../../src/stores/sqlite.js')
  return sqliteStore({ path })
}

const inner = await open()
const faulty = faultyStore(inner)
let lastSent = performance.now()
const store: Store = { ...faulty, traits: faulty.traits }
store.renew = async (held, call) => {
  const sentAt = performance.now()
  const answer = await faulty.renew(held, call)
  if (answer.kind === 'renewed') lastSent = Math.max(lastSent, sentAt)
  return answer
}

/** How late this machine runs timers, and what `held` was in the first tick after a long pause. */
let heldAfterPause: boolean | null = null
let worstLateness = 0
function watch(lease: { readonly held: boolean }): NodeJS.Timeout {
  let last = performance.now()
  return setInterval(() => {
    const gap = performance.now() - last
    if (gap > 1000) heldAfterPause ??= lease.held
    else worstLateness = Math.max(worstLateness, gap - 5)
    last = performance.now()
  }, 5)
}

async function happens(lease: { readonly held: boolean }): Promise<void> {
  switch (what) {
    case 'hangs':
      return faulty.hang()
    case 'fails':
      return faulty.fail('none')
    case 'blocks': {
      const until = performance.now() + 1500
      while (performance.now() < until);
      heldAfterPause = lease.held
      return
    }
    case 'is stopped':
      // The process that started this one stops it when it reads this line, and lets it go on later.
      console.error('holding')
      return
    case 'is deleted':
    case 'is replaced': {
      const call = { signal: new AbortController().signal }
      await inner.revoke?.({ namespace: 'default', name: 'k' }, { force: true }, call)
      if (what === 'is replaced') await others.tryAcquire('k')
    }
  }
}

const leases = createLeases(store, { ttlMs: 1000 })
const others = createLeases(inner, { ttlMs: 1000 })
const sentAt = performance.now()
const run = leases.run('k', async (lease) => {
  lastSent = Math.max(lastSent, sentAt)
  let abortedAfterMs = Number.NaN
  const aborted = new Promise<void>((resolve) => {
    lease.signal.addEventListener('abort', () => {
      abortedAfterMs = performance.now() - lastSent
      resolve()
    })
  })
  await sleep(systemEnvironment().clock, 400, { keepAlive: true })
  const watching = watch(lease)
  await happens(lease)
  await aborted
  clearInterval(watching)
  return { abortedAfterMs, worstLateness, heldAfterPause, held: lease.held }
})
try {
  await run
  console.log(JSON.stringify({ error: 'none' }))
} catch (error) {
  if (!(error instanceof LeaseLostError)) throw error
  console.log(JSON.stringify({ error: error.code, reason: error.reason, ...(error.result as object) }))
}
faulty.heal()
// In this order: closing the faulty store closes the inner one, on which the others still have to release.
await others.close()
await leases.close()
