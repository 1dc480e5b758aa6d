import { connect } from '../support/connect.js'
import { load, versionOf } from '../support/peers.js'
import type { Contestant, Entry, Held, Setup } from './contestant.js'
import { heldWhile } from './held-while.js'

export const redlockUniversal: Entry = {
  name: `redlock-universal ${versionOf('redlock-universal')}`,
  note: 'Polls every 100 ms. Asks with PING before the first lease of a key. Renews within using(), always at four fifths of the TTL; no fence.',
  sends: ['set', 'evalsha', 'eval', 'ping'],
  isPeer: true,
  serverKey: (key) => key,
  open,
}

interface Lock {
  acquire(): Promise<object>
  release(handle: object): Promise<unknown>
  using(work: () => Promise<void>): Promise<void>
}
interface Module {
  IoredisAdapter: new (client: unknown) => object
  createLock(config: object): Lock
}

async function open({ port, ttlMs }: Setup): Promise<Contestant> {
  const { IoredisAdapter, createLock } = load<Module>('redlock-universal')
  const adapter = new IoredisAdapter(await connect(port))
  const lockOf = (key: string) => createLock({ adapter, key, ttl: ttlMs, retryAttempts: Number.MAX_SAFE_INTEGER })
  return {
    async acquire(key): Promise<Held> {
      const lock = lockOf(key)
      const handle = await lock.acquire()
      return { release: () => lock.release(handle) }
    },
    hold: (key) => heldWhile((work) => lockOf(key).using(work)),
  }
}
