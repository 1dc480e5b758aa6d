import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conformance } from '../../src/conformance/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import type { Claim } from '../../src/store.js'
import { memoryServer, memoryStore } from '../../src/stores/memory.js'
import { plainClaim } from '../support/claims.js'

const environment = virtualEnvironment(1)
const server = memoryServer({ environment })

await conformance({
  name: 'memory',
  test,
  open: async () => server.connect(),
  truth: async (key) => server.truth(key),
  wait: environment.advance,
  environment,
  slackMs: 0,
})

const call = { signal: new AbortController().signal }
const claim = (name: string, owner: string, over: Partial<Claim> = {}): Claim =>
  plainClaim(owner, { key: { namespace: 'default', name }, ttlMs: 100, ...over })

test('a lease ends at the very millisecond, and its refusals say when', async () => {
  const store = server.connect()
  await store.acquire(claim('edge', 'a', { label: 'me', lockDelayMs: 20 }), call)
  await environment.advance(119)
  const refusal = await store.acquire(claim('edge', 'b'), call)
  assert.deepEqual(refusal, { kind: 'held', queued: false, holder: 'me', retryAfterMs: 1 })
  await environment.advance(1)
  assert.equal((await store.acquire(claim('edge', 'b'), call)).kind, 'granted')
})

test('losses are told apart: missing, taken, revoked', async () => {
  const store = server.connect()
  const granted = await store.acquire(claim('losses', 'a'), call)
  const held = { ...claim('losses', 'a'), fence: granted.kind === 'granted' ? granted.fence : 0n }
  await store.revoke?.(held.key, { force: false }, call)
  assert.deepEqual(await store.renew(held, call), { kind: 'lost', reason: 'revoked' })
  await store.release(held, { ...call, keepMs: 10 })
  assert.equal((await store.inspect(held.key, call))?.state, 'kept')
  assert.deepEqual(await store.renew(held, call), { kind: 'lost', reason: 'missing' })
  await environment.advance(10)
  assert.deepEqual(await store.renew(held, call), { kind: 'lost', reason: 'missing' })
  await store.acquire(claim('losses', 'b'), call)
  assert.deepEqual(await store.renew(held, call), { kind: 'lost', reason: 'taken' })
})

test('a release says how long the key is kept, also before its minimal hold has passed', async () => {
  const store = server.connect()
  for (const [keepMs, remainingMs] of [
    [0, undefined],
    [30, 30],
    [900, 900],
  ] as const) {
    await store.acquire(claim(`kept ${keepMs}`, 'a', { minHoldMs: 500 }), call)
    await store.release(claim(`kept ${keepMs}`, 'a'), { ...call, keepMs })
    assert.equal((await store.inspect(claim(`kept ${keepMs}`, 'a').key, call))?.remainingMs, remainingMs)
  }
})

test('fences grow from one process to the next as long as the wall clock does, and `fencing` only declares', async () => {
  const first = memoryStore({ environment })
  await first.acquire(claim('k', 'a'), call)
  await environment.advance(1)
  const next = memoryStore({ environment, fencing: 'durable' })
  const [earlier, later] = [await first.inspect(claim('k', 'a').key, call), await next.acquire(claim('k', 'a'), call)]
  assert.ok(later.kind === 'granted' && earlier && later.fence > earlier.fence)
  assert.deepEqual([first.traits.fencing, next.traits.fencing], ['volatile', 'durable'])
})

test('10,000 leases that were lost and keys that were watched leave nothing behind', async () => {
  const own = memoryServer({ environment })
  const store = own.connect()
  for (let i = 0; i < 10_000; i++) {
    await store.acquire(claim(`lost ${i}`, 'a'), call)
    const watch = await store.watch?.(claim(`lost ${i}`, 'b'), () => {}, call)
    watch?.close()
    if (i % 100 === 0) await environment.advance(100)
  }
  await environment.advance(100)
  assert.ok(own.size() <= 1_024, `${own.size()} rows and listeners are left`)
})
