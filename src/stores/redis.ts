import { StoreError } from '../errors.js'
import type {
  AcquireOutcome,
  CallOptions,
  Cancellation,
  Claim,
  ClaimRef,
  HeldRef,
  Holding,
  Key,
  Probe,
  ReleaseOptions,
  ReleaseOutcome,
  RenewOutcome,
  RevokeOutcome,
  Store,
  StoreTraits,
  Watch,
} from '../store.js'
import { heldBy, holdingIn, unusable } from './redis/answers.js'
import { clientOf, type RedisClient, type RedisClientLike } from './redis/client.js'
import { type Connection, OtherLifeError } from './redis/connection.js'
import { Connections, unlessAborted } from './redis/connections.js'
import { Hints } from './redis/hints.js'
import { KeySpace, labelField, ownerField } from './redis/keys.js'
import { checked, MAX_TTL_MS, type RedisOptions, type Settings } from './redis/options.js'
import { listOf, textOf } from './redis/replies.js'
import { Steps } from './redis/steps.js'

export type { RedisClientLike } from './redis/client.js'
export type { RedisOptions } from './redis/options.js'

const traitsOf = ({ maxTtlMs }: { readonly maxTtlMs: number }): StoreTraits => ({
  fencing: 'volatile',
  fenceFloor: true,
  expiry: 'server-clock',
  revoke: 'refuses-renewal',
  order: 'none',
  wakeup: 'notify',
  scope: 'network',
  lockDelay: true,
  detachable: true,
  listsNames: true,
  ttlMinMs: 50,
  ttlMaxMs: maxTtlMs,
  ttlGranularityMs: 1,
})

/** What a store of the default settings declares. */
export const redisTraits: StoreTraits = traitsOf({ maxTtlMs: MAX_TTL_MS.default })

/**
 * Leases on one Redis server (6.2 or newer; Valkey too), through connections of its own, which are made like the client's.
 * Loaded drivers, queues and prefixes of the client play no part, and it need not be connected.
 *
 * A lease is exclusive unless the server's wall clock is moved, it evicts (refused), it is flushed, or it fails over to a
 * replica; the fence covers what does not depend on time. See `docs/stores/redis.md`.
 * @throws TypeError for what is no client of ioredis or node-redis, RangeError for an option out of bounds.
 */
export function redisStore(client: RedisClientLike, options: RedisOptions = {}): Store {
  return new RedisStore(clientOf(client), checked(options))
}

const PAGE = 64
/** A call that is not about a lease's own time is answered within this, or others go another way. */
const PATIENCE_MS = 1_000

/** Clearly less than a call time-out at its default, so that what is asked again then goes out on another connection. */
const patienceOf = (ttlMs: number): number => Math.min(Math.max(ttlMs / 8, 25), 2_000)

class RedisStore implements Store {
  readonly name = 'redis'
  readonly location: string
  readonly traits: StoreTraits
  readonly #settings: Settings
  readonly #keys: KeySpace
  readonly #connections: Connections
  readonly #steps: Steps
  readonly #hints: Hints

  constructor(client: RedisClient, settings: Settings) {
    this.location = client.place
    this.traits = traitsOf(settings)
    this.#settings = settings
    this.#keys = new KeySpace(settings.prefix)
    this.#connections = new Connections(client, settings, this.#keys.counter)
    this.#steps = new Steps(this.#keys.counter.value)
    this.#hints = new Hints(client, settings, this.#keys.revoked)
  }

  acquire(claim: Claim, call: CallOptions): Promise<AcquireOutcome> {
    return this.#on(call, (connection, signal) => this.#acquire(connection, claim, signal))
  }

  renew(held: HeldRef, call: CallOptions): Promise<RenewOutcome> {
    const lease = this.#keys.lease(held.key)
    const { ttlMs, lockDelayMs, fence, fenceFloor } = held
    const arg = `${ownerField(held.owner)} ${fence} ${Math.ceil(ttlMs + lockDelayMs)} ${fenceFloor}`
    return this.#on(call, async (connection, signal) => {
      const answer = await this.#steps.ask(connection, 'renew', lease, arg, {
        signal,
        patienceMs: patienceOf(ttlMs),
        when: 'soon',
      })
      if (answer === 'y') return { kind: 'renewed', fence, ttlMs }
      const reason = answer === 'm' ? 'missing' : answer === 't' ? 'taken' : answer === 'r' ? 'revoked' : null
      if (reason) return { kind: 'lost', reason }
      throw this.#unusable(answer, lease)
    })
  }

  release({ key, owner }: ClaimRef, call: ReleaseOptions): Promise<ReleaseOutcome> {
    const lease = this.#keys.lease(key)
    return this.#on(call, async (connection, signal) => {
      const arg = `${ownerField(owner)} ${Math.max(0, Math.ceil(call.keepMs ?? 0))}`
      const answer = await this.#steps.ask(connection, 'release', lease, arg, { signal, patienceMs: PATIENCE_MS })
      if (answer === 'y') return { kind: 'released' }
      if (answer === 'n') return { kind: 'absent' }
      throw this.#unusable(answer, lease)
    })
  }

  revoke(key: Key, { force }: { readonly force: boolean }, call: CallOptions): Promise<RevokeOutcome> {
    const lease = this.#keys.lease(key)
    return this.#on(call, async (connection, signal) => {
      const arg = `${force ? 1 : 0} ${this.#keys.revoked}`
      const answer = await this.#steps.ask(connection, 'revoke', lease, arg, { signal, patienceMs: PATIENCE_MS })
      const kind = answer === 'd' ? 'freed' : answer === 'r' ? 'refusing' : answer === 'n' ? 'absent' : null
      if (kind) return { kind }
      throw this.#unusable(answer, lease)
    })
  }

  inspect(key: Key, call: CallOptions): Promise<Holding | null> {
    const lease = this.#keys.lease(key)
    return this.#on(call, async (connection, signal) => {
      const answer = await this.#steps.ask(connection, 'look', lease, undefined, { signal, patienceMs: PATIENCE_MS })
      const holding = holdingIn(answer, key)
      if (holding === undefined) throw this.#unusable('f', lease)
      return holding
    })
  }

  /** By SCAN, which never holds the server up and takes as long as it has keys of any kind. */
  async *list(namespace: string, prefix: string, call: CallOptions): AsyncGenerator<Holding> {
    const pattern = this.#keys.pattern(namespace, prefix)
    const found = new Map<string, string>()
    for (let cursor = ''; cursor !== '0'; ) {
      const from = cursor || '0'
      const page = await this.#on(call, (connection) =>
        connection.request(['SCAN', from, 'MATCH', pattern, 'COUNT', '1000'], PATIENCE_MS),
      )
      const [next, keys] = listOf(page)
      cursor = textOf(next)
      for (const key of listOf(keys).map(textOf)) found.set(this.#keys.nameIn(namespace, key), key)
    }
    const names = [...found.keys()].sort()
    for (let i = 0; i < names.length; i += PAGE) {
      const page = names.slice(i, i + PAGE)
      const looks = page.map((name) =>
        this.#on(call, (connection, signal) =>
          this.#steps.ask(connection, 'look', found.get(name) as string, undefined, {
            signal,
            patienceMs: PATIENCE_MS,
          }),
        ),
      )
      const answers = await Promise.all(looks)
      for (const [at, name] of page.entries()) {
        const holding = holdingIn(answers[at] as string, { namespace, name })
        if (holding) yield holding
      }
    }
  }

  watch(ref: ClaimRef | HeldRef, onHint: () => void, call: CallOptions): Promise<Watch> {
    return this.#hints.listen(this.#keys.lease(ref.key), 'fence' in ref, onHint, call)
  }

  probe(call: CallOptions): Promise<Probe> {
    return this.#on(call, async (connection, signal) => {
      const life = await unlessAborted(this.#connections.look(connection), signal)
      return {
        id: `redis ${life.runId}`,
        incarnation: life.runId,
        serverTimeMs: life.serverTimeMs,
        version: life.version,
        traits: { ...this.traits, fencing: life.durable ? 'durable' : 'volatile' },
        findings: life.findings,
      }
    })
  }

  async close(): Promise<void> {
    this.#hints.close()
    this.#connections.close()
  }

  /** Once more where the server turns out to be another one: it did nothing, and is looked at by then. */
  async #on<T>(call: CallOptions, work: (connection: Connection, signal: Cancellation) => Promise<T>): Promise<T> {
    const signal = call.cancellation ?? call.signal
    for (let attempt = 0; ; attempt++) {
      this.#connections.refuseWhenUseless(signal)
      const connection = this.#connections.usable ?? (await this.#connections.use(signal))
      try {
        return await work(connection, signal)
      } catch (error) {
        if (!(error instanceof OtherLifeError) || attempt > 0) throw error
      }
    }
  }

  async #acquire(connection: Connection, claim: Claim, signal: Cancellation): Promise<AcquireOutcome> {
    const { clock } = this.#settings.environment
    const { ttlMs, lockDelayMs, minHoldMs, fenceFloor } = claim
    const lease = this.#keys.lease(claim.key)
    const { refusal, readyAt, why } = connection.life
    if (refusal) throw connection.outdated() ?? refusal
    const startedAt = clock.now()
    if (startedAt < readyAt) return { kind: 'not-ready', why, retryAfterMs: Math.ceil(readyAt - startedAt) }
    for (let attempt = 0; ; attempt++) {
      const now = clock.now()
      // What lands when nobody can use it any more would only stand in the way.
      const before = Math.ceil(now * 1000 + connection.aheadUs + ttlMs * 1000)
      const keptMs = Math.ceil(Math.max(ttlMs + lockDelayMs, minHoldMs))
      const arg = `${ownerField(claim.owner)} ${keptMs} ${before} ${fenceFloor} ${labelField(claim.label)}`
      const answer = await this.#steps.ask(connection, 'acquire', lease, arg, {
        signal,
        patienceMs: patienceOf(ttlMs),
      })
      const rest = answer.slice(2)
      if (answer.startsWith('g ')) return { kind: 'granted', fence: BigInt(rest), ttlMs }
      if (answer.startsWith('h ')) return heldBy(rest)
      if (!answer.startsWith('l ')) throw this.#unusable(answer, lease)
      // It did nothing, so it may be asked again, unless we were late: a slow answer says nothing of the server's clock.
      if (attempt > 0 || clock.now() - now > ttlMs / 2)
        throw new StoreError(`${this.location}: the question came too late to be of use`, 'none')
      connection.aheadUs = Number(rest) - now * 1000
    }
  }

  #unusable(answer: string, lease: string): StoreError {
    return unusable(answer, lease, this.#keys.counter.value, this.location)
  }
}
