/**
 * Randomised rounds: a few contenders for one key, each with a connection of its own behind a proxy of its own to one real
 * server, while the proxies delay, lose, hold up, reset and half-open what passes. What is drawn depends on the seed and the
 * round only; when it happens is up to a real machine.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TcpProxy } from '../../src/faults/index.js'
import type { Lease, LeaseLostError } from '../../src/index.js'
import { SeededRandom } from '../../src/simulation/index.js'
import type { Store } from '../../src/store.js'
import { type Belief, judge, type Verdict } from './beliefs.js'
import { now, ownerAt, type RedisBed, redisBed } from './redis-bed.js'
import { type RedisServer, redisServer } from './servers/redis.js'
import { CLIENTS } from './servers/redis-clients.js'

export const TTL_MS = 200
/** Longer than by default, so that a loaded machine does not answer too late all the time. */
const CALL_MS = 60
const LOCK_DELAY_MS = 40
const ROUND_MS = 700
const CONTENDERS = 3
/** For the last question of a round: a ghost's time, and what a loaded machine needs to connect and ask. */
const HEALED_WITHIN_MS = TTL_MS + LOCK_DELAY_MS + 3000

export interface RoundsOptions {
  readonly seed: string
  readonly rounds: number
  /** Rounds side by side, on keys of their own. Most of a round is waiting. */
  readonly lanes: number
  /** Nothing but long silences: for the control. */
  readonly onlySilence?: boolean
  /** A store to use in place of each contender's: for the control. */
  readonly wrap?: (store: Store) => Store
  /** Looked at before each round. */
  readonly enough?: (soFar: RoundsResult) => boolean
}

export interface RoundsResult extends Verdict {
  readonly rounds: number
  readonly beliefs: number
  /** Beliefs that ended before their holder let go. */
  readonly lost: number
  /** Questions without a verdict. */
  readonly unavailable: number
  readonly faults: Readonly<Record<string, number>>
  /** After the faults, an owner at the server that is not the holder's for longer than a lease lasts. */
  readonly ghosts: readonly string[]
  /** After the faults, nobody could have the key. */
  readonly stuck: readonly string[]
}

class Tally {
  rounds = 0
  readonly beliefs: Belief[] = []
  lost = 0
  unavailable = 0
  readonly faults: Record<string, number> = {}
  readonly ghosts: string[] = []
  readonly stuck: string[] = []

  get result(): RoundsResult {
    const { rounds, lost, unavailable, faults, ghosts, stuck } = this
    return { rounds, beliefs: this.beliefs.length, lost, unavailable, faults, ghosts, stuck, ...judge(this.beliefs) }
  }
}

export async function runRounds({
  seed,
  rounds,
  lanes,
  onlySilence = false,
  wrap,
  enough,
}: RoundsOptions): Promise<RoundsResult> {
  const random = new SeededRandom(seed)
  const server = await redisServer()
  const tally = new Tally()
  let next = 0
  const lane = async (_: unknown, index: number) => {
    const beds = await Promise.all(
      Array.from({ length: CONTENDERS }, (_, i) =>
        redisBed(server, inTurn(CLIENTS, index * CONTENDERS + i), {
          ttlMs: TTL_MS,
          callTimeoutMs: CALL_MS,
          lockDelayMs: i === 0 ? LOCK_DELAY_MS : 0,
          ...(wrap && { wrap }),
        }),
      ),
    )
    try {
      while (next < rounds && !enough?.(tally.result)) {
        const round = ++next
        await runRound(`${seed}/${round}`, random.fork(`${round}`), server, beds, onlySilence, tally)
      }
    } finally {
      await Promise.all(beds.map((bed) => bed.end()))
    }
  }
  try {
    await Promise.all(Array.from({ length: lanes }, lane))
  } finally {
    await server.end()
  }
  return tally.result
}

function inTurn<T>(items: readonly T[], n: number): T {
  const item = items[n % items.length]
  if (item === undefined) throw new Error('nothing to choose from')
  return item
}

async function runRound(
  key: string,
  random: SeededRandom,
  server: RedisServer,
  beds: readonly RedisBed[],
  onlySilence: boolean,
  tally: Tally,
): Promise<void> {
  const until = now() + ROUND_MS
  await Promise.all([
    ...beds.map((bed, i) => contend(bed, key, `contender ${i}`, random.fork(`contender ${i}`), until, tally)),
    ...beds.map(({ proxy }, i) => plague(proxy, random.fork(`faults ${i}`), until, onlySilence, tally)),
  ])
  for (const { proxy } of beds) {
    proxy.heal()
    // What lost something is dead, which is found out in its own time; the next round shall begin with all connections.
    proxy.cut()
  }
  await looksWell(key, server, inTurn(beds, random.below(beds.length)), tally)
  tally.rounds++
}

async function contend(bed: RedisBed, key: string, who: string, random: SeededRandom, until: number, tally: Tally) {
  while (now() < until) {
    let lease: Lease
    try {
      lease = await bed.leases.acquire(key, { waitMs: random.below(TTL_MS) })
    } catch (error) {
      if (codeOf(error) === 'ERR_LEASE_UNAVAILABLE') tally.unavailable++
      await sleep(1 + random.below(20))
      continue
    }
    const from = now()
    let lostAt = Number.POSITIVE_INFINITY
    const { signal } = lease
    const told = new Promise<void>((resolve) => {
      const onAbort = () => {
        lostAt = now() - (signal.reason as LeaseLostError).lateByMs
        resolve()
      }
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort)
    })
    const holdMs = random.chance(0.3) ? TTL_MS + random.below(2 * TTL_MS) : random.below(TTL_MS / 4)
    await Promise.race([sleep(holdMs), told])
    // Reading it ends what is over: a loss is told before the next line.
    const held = lease.held
    tally.beliefs.push({ key, who, fence: lease.fence, from, until: held ? now() : lostAt })
    if (!held) tally.lost++
    await lease.release()
  }
}

type FaultKind = 'hole' | 'loseReplies' | 'loseRequests' | 'hang' | 'delay' | 'late' | 'cut' | 'halfOpen' | 'refuse'
const FAULTS: readonly [FaultKind, ...FaultKind[]] = [
  'hole',
  'loseReplies',
  'loseReplies',
  'loseRequests',
  'hang',
  'delay',
  'late',
  'cut',
  'halfOpen',
  'refuse',
]

/** One fault after another, with pauses between; lengths are near the TTL more often than chance would have it. */
async function plague(
  proxy: TcpProxy,
  random: SeededRandom,
  until: number,
  onlySilence: boolean,
  tally: Tally,
): Promise<void> {
  const length = () =>
    (onlySilence ? TTL_MS : 0) +
    Math.max(1, random.chance(0.3) ? TTL_MS - 2 + random.below(5) : random.below(random.chance(0.5) ? 30 : 2 * TTL_MS))
  const wait = (ms: number) => sleep(Math.max(0, Math.min(ms, until - now())))
  await wait(random.below(200))
  while (now() < until) {
    const kind = onlySilence ? 'hole' : random.pick(FAULTS)
    tally.faults[kind] = (tally.faults[kind] ?? 0) + 1
    if (kind === 'delay') proxy.delay(length() / 2)
    else if (kind === 'late') proxy.delay({ requests: length() })
    else proxy[kind]()
    if (kind === 'refuse') proxy.cut()
    await wait(length())
    proxy.heal()
    if (random.chance(0.7)) proxy.cut()
    await wait(random.below(200))
  }
}

/** Somebody can have the key soon; once a ghost's time is over, the server knows of no owner but the holder. */
async function looksWell(key: string, server: RedisServer, bed: RedisBed, tally: Tally): Promise<void> {
  const healedAt = now()
  const lease = await acquireWithin(bed, key, healedAt + HEALED_WITHIN_MS)
  if (!lease) {
    tally.stuck.push(`${key}: ${await ownerAt(server, key)} at the server`)
    return
  }
  const from = now()
  await sleep(Math.max(0, healedAt + TTL_MS + LOCK_DELAY_MS + 10 - now()))
  const owner = await ownerAt(server, key)
  const held = lease.held
  tally.beliefs.push({ key, who: 'the last one', fence: lease.fence, from, until: held ? now() : from })
  if (held && owner !== lease.owner) tally.ghosts.push(`${key}: ${owner} beside the holder`)
  if ((await lease.release()) !== 'released') return
  const left = await ownerAt(server, key)
  if (left !== null) tally.ghosts.push(`${key}: ${left} when all was over`)
}

/** Held, or no verdict. Anything else is a mistake, here or there, and ends the run. */
function codeOf(error: unknown): string {
  const { code = '' } = error as { code?: string }
  if (code !== 'ERR_LEASE_HELD' && code !== 'ERR_LEASE_UNAVAILABLE') throw error
  return code
}

async function acquireWithin(bed: RedisBed, key: string, until: number): Promise<Lease | null> {
  for (;;) {
    try {
      return await bed.leases.acquire(key, { waitMs: Math.max(0, Math.ceil(until - now())) })
    } catch (error) {
      codeOf(error)
      if (now() >= until) return null
      await sleep(20)
    }
  }
}
