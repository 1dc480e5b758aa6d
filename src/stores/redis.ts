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
import { checked, type RedisOptions, type Settings } from './redis/options.js'
import { listOf, textOf } from './redis/replies.js'
import type { StepName } from './redis/scripts.js'
import { type Asked, Steps } from './redis/steps.js'
import { traitsOf } from './redis/traits.js'

export type { RedisClientLike } from './redis/client.js'
export type { RedisOptions } from './redis/options.js'
export { redisTraits } from './redis/traits.js'

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

const PATIENT = { patienceMs: PATIENCE_MS } as const
const RELEASED = { kind: 'released' } as const
const ABSENT = { kind: 'absent' } as const

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
    return this.#on(call, (connection, signal) => this.#acquire(connection, claim, signal, 0))
  }

  renew(held: HeldRef, call: CallOptions): Promise<RenewOutcome> {
    const lease = this.#keys.lease(held.key)
    const { ttlMs, lockDelayMs, fence, fenceFloor } = held
    const arg = `${ownerField(held.owner)} ${fence} ${Math.ceil(ttlMs + lockDelayMs)} ${fenceFloor}`
    const asked = { patienceMs: patienceOf(ttlMs), when: 'soon' } as const
    return this.#ask(call, 'renew', lease, arg, asked, (answer) => {
      if (answer === 'y') return { kind: 'renewed', fence, ttlMs }
      const reason = answer === 'm' ? 'missing' : answer === 't' ? 'taken' : answer === 'r' ? 'revoked' : null
      return reason && { kind: 'lost', reason }
    })
  }

  release({ key, owner }: ClaimRef, call: ReleaseOptions): Promise<ReleaseOutcome> {
    const arg = `${ownerField(owner)} ${Math.max(0, Math.ceil(call.keepMs ?? 0))}`
    return this.#ask(call, 'release', this.#keys.lease(key), arg, PATIENT, (answer) =>
      answer === 'y' ? RELEASED : answer === 'n' ? ABSENT : null,
    )
  }

  revoke(key: Key, { force }: { readonly force: boolean }, call: CallOptions): Promise<RevokeOutcome> {
    const arg = `${force ? 1 : 0} ${this.#keys.revoked}`
    return this.#ask(call, 'revoke', this.#keys.lease(key), arg, PATIENT, (answer) => {
      const kind = answer === 'd' ? 'freed' : answer === 'r' ? 'refusing' : answer === 'n' ? 'absent' : null
      return kind && { kind }
    })
  }

  async inspect(key: Key, call: CallOptions): Promise<Holding | null> {
    const lease = this.#keys.lease(key)
    const read = (answer: string) => ({ holding: holdingIn(answer, key) })
    const { holding } = await this.#ask(call, 'look', lease, undefined, PATIENT, read)
    if (holding === undefined) throw this.#unusable('f', lease)
    return holding
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
      // What holds something else is no lease, and none of this list.
      const read = (name: string) => (answer: string) => ({ holding: holdingIn(answer, { namespace, name }) })
      const looks = await Promise.all(
        page.map((name) => this.#ask(call, 'look', found.get(name) as string, undefined, PATIENT, read(name))),
      )
      for (const { holding } of looks) if (holding) yield holding
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
  #on<T>(call: CallOptions, work: (connection: Connection, signal: Cancellation) => Promise<T>): Promise<T> {
    const signal = call.cancellation ?? call.signal
    return this.#once(signal, work).catch((error) => {
      if (!(error instanceof OtherLifeError)) throw error
      return this.#once(signal, work)
    })
  }

  #once<T>(signal: Cancellation, work: (connection: Connection, signal: Cancellation) => Promise<T>): Promise<T> {
    const connection = this.#connections.usable
    if (connection && !signal.aborted) return work(connection, signal)
    return this.#connections.use(signal).then((opened) => work(opened, signal))
  }

  /** `read` gives null for what is no answer to this question. */
  #ask<T>(
    call: CallOptions,
    step: StepName,
    lease: string,
    arg: string | undefined,
    { patienceMs, when = 'now' }: Omit<Asked, 'signal'>,
    read: (answer: string) => T | null,
  ): Promise<T> {
    return this.#on(call, (connection, signal) =>
      this.#steps.ask(connection, step, lease, arg, { signal, patienceMs, when }).then((answer) => {
        const outcome = read(answer)
        if (outcome === null) throw this.#unusable(answer, lease)
        return outcome
      }),
    )
  }

  async #notReady(connection: Connection, now: number): Promise<AcquireOutcome> {
    const { refusal, readyAt, why } = connection.life
    if (refusal) throw connection.outdated() ?? refusal
    return { kind: 'not-ready', why, retryAfterMs: Math.ceil(readyAt - now) }
  }

  #acquire(connection: Connection, claim: Claim, signal: Cancellation, attempts: number): Promise<AcquireOutcome> {
    const { clock } = this.#settings.environment
    const now = clock.now()
    if (connection.life.refusal || now < connection.life.readyAt) return this.#notReady(connection, now)
    const { ttlMs, lockDelayMs, minHoldMs, fenceFloor } = claim
    const lease = this.#keys.lease(claim.key)
    // What lands when nobody can use it any more would only stand in the way.
    const before = Math.ceil(now * 1000 + connection.aheadUs + ttlMs * 1000)
    const keptMs = Math.ceil(Math.max(ttlMs + lockDelayMs, minHoldMs))
    const arg = `${ownerField(claim.owner)} ${keptMs} ${before} ${fenceFloor} ${labelField(claim.label)}`
    const asked = { signal, patienceMs: patienceOf(ttlMs) }
    return this.#steps.ask(connection, 'acquire', lease, arg, asked).then((answer) => {
      const rest = answer.slice(2)
      if (answer.startsWith('g ')) return { kind: 'granted', fence: BigInt(rest), ttlMs }
      if (answer.startsWith('h ')) return heldBy(rest)
      if (!answer.startsWith('l ')) throw this.#unusable(answer, lease)
      // It did nothing, so it may be asked again, unless we were late: a slow answer says nothing of the server's clock.
      if (attempts > 0 || clock.now() - now > ttlMs / 2)
        throw new StoreError(`${this.location}: the question came too late to be of use`, 'none')
      connection.aheadUs = Number(rest) - now * 1000
      return this.#acquire(connection, claim, signal, attempts + 1)
    })
  }

  #unusable(answer: string, lease: string): StoreError {
    return unusable(answer, lease, this.#keys.counter.value, this.location)
  }
}
