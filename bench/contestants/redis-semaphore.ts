import { connect } from '../support/connect.js'
import { load, versionOf } from '../support/peers.js'
import type { Contestant, Entry, Held, Setup } from './contestant.js'

export const redisSemaphore: Entry = {
  name: `redis-semaphore ${versionOf('redis-semaphore')}`,
  note: 'Its Mutex. Polls every 10 ms. Renews, no fence.',
  sends: ['set', 'evalsha', 'eval'],
  isPeer: true,
  serverKey: (key) => `mutex:${key}`,
  open,
}

interface Mutex extends Held {
  acquire(): Promise<void>
}

async function open({ port, ttlMs }: Setup): Promise<Contestant> {
  const { Mutex } = load<{ Mutex: new (client: unknown, key: string, options: object) => Mutex }>('redis-semaphore')
  const redis = await connect(port)
  const options = { lockTimeout: ttlMs, acquireTimeout: Number.POSITIVE_INFINITY, refreshInterval: ttlMs / 3 }
  const acquire = async (key: string): Promise<Held> => {
    const mutex = new Mutex(redis, key, options)
    await mutex.acquire()
    return mutex
  }
  return { acquire, hold: acquire }
}
