import assert from 'node:assert/strict'
import { type Environment, systemEnvironment } from '../environment.js'
import { StoreError } from '../errors.js'
import type { AcquireOutcome, CallOptions, Claim, HeldRef, Key, Store, StoreTraits } from '../store.js'
import type { Harness } from './harness.js'

/** A lease that was granted to a check. */
export interface Hold extends HeldRef {
  readonly grantedTtlMs: number
}

/** What one check works with: clients, fresh keys and claims, and time. */
export class Bench {
  readonly harness: Harness
  readonly traits: StoreTraits
  readonly environment: Environment
  readonly ttlMs: number
  readonly slackMs: number
  readonly call: CallOptions = { signal: new AbortController().signal }
  readonly #opened: Store[] = []
  readonly #namespace: string
  #keys = 0
  #stranger: Store | undefined

  constructor(harness: Harness, traits: StoreTraits) {
    this.harness = harness
    this.traits = traits
    this.environment = harness.environment ?? systemEnvironment()
    this.ttlMs = harness.ttlMs ?? Math.max(400, traits.ttlMinMs)
    this.slackMs = harness.slackMs ?? 100
    this.#namespace = `conformance-${this.environment.random.id()}`
  }

  async open(): Promise<Store> {
    const store = await this.harness.open()
    this.closeLater(store)
    return store
  }

  closeLater(store: Store): void {
    this.#opened.push(store)
  }

  async close(): Promise<void> {
    for (const store of this.#opened) await store.close()
  }

  wait(ms: number): Promise<void> {
    return this.harness.wait(ms)
  }

  /** A key that nobody has used; with a name, one of this check's own namespace. */
  key(name?: string): Key {
    return { namespace: this.#namespace, name: name ?? `key-${++this.#keys}` }
  }

  claim(key: Key, over: Partial<Claim> = {}): Claim {
    const owner = this.environment.random.id()
    const defaults = { ttlMs: this.ttlMs, lockDelayMs: 0, minHoldMs: 0, fenceFloor: 0n, queue: false }
    return { key, owner, ...defaults, label: 'conformance', life: { pids: [process.pid] }, ...over }
  }

  /** Acquires what must be granted. */
  async hold(store: Store, key: Key, over: Partial<Claim> = {}): Promise<Hold> {
    const claim = this.claim(key, over)
    const outcome = await store.acquire(claim, this.call)
    return this.held(claim, outcome)
  }

  held(claim: Claim, outcome: AcquireOutcome): Hold {
    assert.ok(outcome.kind === 'granted', `a free key must be granted, but the answer is ${show(outcome)}`)
    const { key, owner, ttlMs, lockDelayMs } = claim
    return { key, owner, ttlMs, lockDelayMs, fence: outcome.fence, fenceFloor: 0n, grantedTtlMs: outcome.ttlMs }
  }

  async renew(store: Store, hold: HeldRef, over: Partial<HeldRef> = {}) {
    const { key, owner, ttlMs, lockDelayMs, fence, fenceFloor } = { ...hold, ...over }
    return store.renew({ key, owner, ttlMs, lockDelayMs, fence, fenceFloor }, this.call)
  }

  async release(store: Store, { key, owner }: HeldRef, keepMs = 0) {
    return store.release({ key, owner }, { ...this.call, keepMs })
  }

  /** Whether somebody else could have the key now, without keeping it. */
  async isFree(key: Key): Promise<boolean> {
    this.#stranger ??= await this.open()
    const claim = this.claim(key)
    const outcome = await this.#stranger.acquire(claim, this.call)
    if (outcome.kind !== 'granted') return false
    await this.#stranger.release(claim, this.call)
    return true
  }

  async assertFree(key: Key, when: string): Promise<void> {
    const truth = await this.harness.truth?.(key)
    if (truth !== undefined) assert.equal(truth && 'taken', null, `the backend itself still has the key ${when}`)
    assert.ok(await this.isFree(key), `the key must be free ${when}, but an acquire is refused`)
  }

  async assertTaken(key: Key, when: string): Promise<void> {
    const truth = await this.harness.truth?.(key)
    assert.notEqual(truth, null, `the backend itself has forgotten the key ${when}`)
    assert.ok(!(await this.isFree(key)), `the key must be taken ${when}, but somebody else was granted it`)
  }

  /** Waits until the lease is over, had it last been granted or renewed just now. */
  past(hold: Hold): Promise<void> {
    return this.wait(hold.grantedTtlMs + hold.lockDelayMs + this.slackMs)
  }

  /** Lets time pass until the promise settles. */
  async during<T>(work: Promise<T>, stepMs = 10): Promise<T> {
    let settled = false
    const end = () => {
      settled = true
    }
    work.then(end, end)
    while (!settled) await this.wait(stepMs)
    return work
  }

  /** Looks until `seen` answers yes, `withinMs` at most. */
  async eventually(seen: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
    const { clock } = this.environment
    const until = clock.now() + withinMs
    for (;;) {
      if (await seen()) return true
      if (clock.now() >= until) return false
      await this.wait(Math.min(10, withinMs))
    }
  }
}

/** The error with which a call gave no verdict. */
export async function noVerdict(call: Promise<unknown> | undefined, what: string): Promise<StoreError> {
  const answer = await Promise.resolve(call).then(
    (value) => ({ value }),
    (reason: unknown) => ({ reason }),
  )
  assert.ok('reason' in answer, `${what} must reject, but the answer is ${show(answer)}`)
  const { reason } = answer
  assert.ok(reason instanceof StoreError, `${what} must reject with a StoreError, but it is ${String(reason)}`)
  return reason
}

/** For messages and for looking for secrets: JSON that can hold fences. */
export function show(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part)) ?? String(value)
}
