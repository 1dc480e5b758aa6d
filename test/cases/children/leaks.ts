/** Prints what stays behind on memory, with a path on SQLite, or with a port on Redis. With `leaky`, on a store that does leave things behind. */
import type { Store } from '../../../src/index.js'
import { memoryStore } from '../../../src/stores/memory.js'
import { complaints, growth, type Load } from '../../support/leaks.js'

const [kind, load = '{}', path] = process.argv.slice(2)
if (!globalThis.gc) throw new Error('needs --expose-gc')

const remembered = new Map<string, unknown>()
const leaky = (store: Store): Store => ({
  ...store,
  acquire(claim, call) {
    remembered.set(claim.owner, claim)
    return store.acquire(claim, call)
  },
  // Forgets some of the keys: rows stay.
  release: async (ref, call) => (ref.key.name.includes('7 of') ? { kind: 'released' } : store.release(ref, call)),
})
const open = async (): Promise<Store> => {
  if (kind === 'leaky') return leaky(memoryStore())
  if (path === undefined) return memoryStore()
  if (kind === 'redis') {
    const [{ Redis }, { redisStore }] = await Promise.all([import('ioredis'), import('../../../src/stores/redis.js')])
    const client = new Redis({ host: '127.0.0.1', port: Number(path), lazyConnect: true })
    return redisStore(client, { trustRestart: true, maxTtlMs: 60_000 })
  }
  const { sqliteStore } = await import('../../../src/stores/sqlite.js')
  return sqliteStore({ path })
}
console.log(JSON.stringify(complaints(await growth(await open(), JSON.parse(load) as Load))))
