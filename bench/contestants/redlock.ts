import { connect } from '../support/connect.js'
import { load, versionOf } from '../support/peers.js'
import type { Contestant, Entry, Held, Setup } from './contestant.js'
import { heldWhile } from './held-while.js'

/** The callers of these wait for their turn as long as it takes; the delay between two tries is the default, 200 ms. */
const retryCount = -1

export const redlock4: Entry = {
  name: `redlock ${versionOf('redlock-4')}`,
  note: 'Polls every 100 to 300 ms. No renewal (here: by hand, extend every third of the TTL), no fence.',
  sends: ['evalsha', 'eval'],
  isPeer: true,
  serverKey: (key) => key,
  open: openRedlock4,
}

interface Lock4 {
  unlock(): PromiseLike<unknown>
  extend(ttlMs: number): PromiseLike<unknown>
}
interface Redlock4 {
  lock(key: string, ttlMs: number): PromiseLike<Lock4>
}

async function openRedlock4({ port, ttlMs }: Setup): Promise<Contestant> {
  const Redlock = load<new (clients: unknown[], options: object) => Redlock4>('redlock-4')
  const redlock = new Redlock([await connect(port)], { retryCount })
  return {
    async acquire(key): Promise<Held> {
      const lock = await redlock.lock(key, ttlMs)
      return { release: () => lock.unlock() }
    },
    async hold(key): Promise<Held> {
      const lock = await redlock.lock(key, ttlMs)
      const beat = setInterval(() => lock.extend(ttlMs), ttlMs / 3)
      return {
        release() {
          clearInterval(beat)
          return lock.unlock()
        },
      }
    },
  }
}

export const redlock5: Entry = {
  name: `redlock ${versionOf('redlock-5')}`,
  note: 'Polls every 100 to 300 ms. Renews only within using(), no fence.',
  sends: ['evalsha', 'eval'],
  isPeer: true,
  serverKey: (key) => key,
  open: (setup) => openRedlock5(load<{ default: MakeRedlock5 }>('redlock-5').default, setup),
}

export const sesamecare: Entry = {
  name: `@sesamecare-oss/redlock ${versionOf('@sesamecare-oss/redlock')}`,
  note: 'As redlock 5, of which it is a fork.',
  sends: ['evalsha', 'eval'],
  isPeer: true,
  serverKey: (key) => key,
  open: (setup) => openRedlock5(load<{ Redlock: MakeRedlock5 }>('@sesamecare-oss/redlock').Redlock, setup),
}

interface Redlock5 {
  acquire(keys: string[], ttlMs: number): Promise<Held>
  using(keys: string[], ttlMs: number, work: () => Promise<void>): Promise<void>
}
type MakeRedlock5 = new (clients: unknown[], settings: object) => Redlock5

async function openRedlock5(Redlock: MakeRedlock5, { port, ttlMs }: Setup): Promise<Contestant> {
  // The default renews half a second before the end, at which one slow answer loses the lease.
  const automaticExtensionThreshold = Math.floor((ttlMs * 2) / 3)
  const redlock = new Redlock([await connect(port)], { retryCount, automaticExtensionThreshold })
  return {
    acquire: (key) => redlock.acquire([key], ttlMs),
    hold: (key) => heldWhile((work) => redlock.using([key], ttlMs, work)),
  }
}
