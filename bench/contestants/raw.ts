import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../support/connect.js'
import type { Contestant, Entry, Held, Setup } from './contestant.js'

/** What one would write by hand: the measure of all others. */
export const raw: Entry = {
  name: 'raw ioredis',
  note: 'SET NX PX, and a script that compares and deletes; polls every 5 ms; renews by one script per lease. No fence.',
  sends: ['set', 'evalsha'],
  isPeer: false,
  serverKey: (key) => key,
  open,
}

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`
const RENEW = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`

async function open({ port, ttlMs }: Setup): Promise<Contestant> {
  const redis = await connect(port)
  const release = (await redis.script('LOAD', RELEASE)) as string
  const renew = (await redis.script('LOAD', RENEW)) as string

  async function owned(key: string): Promise<string> {
    const owner = randomUUID()
    while ((await redis.set(key, owner, 'PX', ttlMs, 'NX')) !== 'OK') await sleep(3 + Math.random() * 4)
    return owner
  }
  return {
    async acquire(key): Promise<Held> {
      const owner = await owned(key)
      return { release: () => redis.evalsha(release, 1, key, owner) }
    },
    async hold(key): Promise<Held> {
      const owner = await owned(key)
      const beat = setInterval(() => void redis.evalsha(renew, 1, key, owner, ttlMs), ttlMs / 3)
      return {
        release() {
          clearInterval(beat)
          return redis.evalsha(release, 1, key, owner)
        },
      }
    },
  }
}
