import { createLeases } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis.js'
import { connect } from '../support/connect.js'
import type { Contestant, Entry, Setup } from './contestant.js'

export const holdfast: Entry = {
  name: 'holdfast',
  note: 'With what it always does: a fence, an owner check, a heartbeat and a deadline for each lease.',
  sends: ['evalsha', 'eval', 'subscribe', 'unsubscribe'],
  isPeer: false,
  serverKey: (key) => `holdfast:lease:default:${key}`,
  open,
}

async function open({ port, ttlMs }: Setup): Promise<Contestant> {
  // The server was started a moment ago, and never held a lease before: there is nothing to wait for.
  const store = redisStore(await connect(port), { trustRestart: true })
  const leases = createLeases(store, { ttlMs })
  const acquire = (key: string) => leases.acquire(key)
  return { acquire, hold: acquire }
}
