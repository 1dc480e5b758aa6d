import assert from 'node:assert/strict'
import test from 'node:test'
import {
  breakOff,
  delayReply,
  delayRequest,
  duplicate,
  type Fault,
  type FaultyStore,
  faultyStore,
  hang,
  loseReply,
  loseRequest,
  pass,
  refuse,
} from '../../src/faults/index.js'
import { type Claim, type Store, StoreError } from '../../src/index.js'
import { type VirtualEnvironment, virtualEnvironment } from '../../src/simulation/index.js'
import { type MemoryServer, memoryServer } from '../../src/stores/memory.js'
import { settling } from '../support/bed.js'
import { plainClaim } from '../support/claims.js'

const KEY = { namespace: 'n', name: 'k' }
const call = { signal: new AbortController().signal }
const claim = (owner: string): Claim => plainClaim(owner, { key: KEY, life: { pids: [1] } })

interface Seen {
  readonly env: VirtualEnvironment
  readonly server: MemoryServer
  readonly store: FaultyStore
  readonly seen: ReturnType<typeof settling<unknown>>
  taken(): boolean
}

/** An acquire to which the fault happens, right after it was sent. */
async function acquiring(fault: Fault): Promise<Seen> {
  const env = virtualEnvironment(1)
  const server = memoryServer({ environment: env })
  const store = faultyStore(server.connect(), {
    clock: env.clock,
    plan: (operation) => (operation === 'acquire' ? fault : pass),
  })
  const seen = settling<unknown>(store.acquire(claim('o'), call))
  await env.advance(0)
  return { env, server, store, seen, taken: () => server.truth(KEY) !== null }
}

test('pass: executed and answered', async () => {
  const { seen, taken, store } = await acquiring(pass)
  assert.deepEqual([seen.state, taken(), store.open], ['resolved', true, 0])
})

test('delay-request: executed and answered later', async () => {
  const { env, seen, taken, store } = await acquiring(delayRequest(50))
  assert.deepEqual([seen.state, taken(), store.open], ['pending', false, 1])
  await env.advance(50)
  assert.deepEqual([seen.state, taken(), store.open], ['resolved', true, 0])
})

test('delay-reply: executed now, answered later', async () => {
  const { env, seen, taken } = await acquiring(delayReply(50))
  assert.deepEqual([seen.state, taken()], ['pending', true])
  await env.advance(50)
  assert.equal(seen.state, 'resolved')
})

test('lose-request and lose-reply: never answered; executed or not', async () => {
  for (const [fault, executed] of [
    [loseRequest, false],
    [loseReply, true],
  ] as const) {
    const { env, seen, taken, store } = await acquiring(fault)
    const before = taken()
    store.heal()
    await env.advance(500)
    assert.deepEqual([seen.state, before, taken()], ['pending', executed, executed])
  }
})

test('hang: arrives, and is answered, when the store heals', async () => {
  const { env, seen, taken, store } = await acquiring(hang)
  await env.advance(500)
  assert.deepEqual([seen.state, taken()], ['pending', false])
  store.heal()
  await env.advance(0)
  assert.deepEqual([seen.state, taken()], ['resolved', true])
})

test('fail: the effect is what it says, and what it says of it is true', async () => {
  for (const [fault, effect, executed] of [
    [refuse, 'none', false],
    [breakOff(true), 'unknown', true],
    [breakOff(false), 'unknown', false],
  ] as const) {
    const { seen, taken } = await acquiring(fault)
    assert.ok(seen.error instanceof StoreError)
    assert.deepEqual([seen.error.effect, taken()], [effect, executed])
  }
})

test('duplicate: arrives a second time, even after a release', async () => {
  const { env, store, seen, taken } = await acquiring(duplicate(50))
  assert.equal(seen.state, 'resolved')
  await store.release({ key: KEY, owner: 'o' }, call)
  assert.equal(taken(), false)
  await env.advance(50)
  assert.equal(taken(), true)
})

test('commands name the operations they are for; counts go by operation; heal ends them', async () => {
  const env = virtualEnvironment(1)
  const store = faultyStore(memoryServer({ environment: env }).connect(), { clock: env.clock })
  store.fail('none', 'renew', 'inspect')
  assert.equal((await store.acquire(claim('o'), call)).kind, 'granted')
  await assert.rejects(store.inspect(KEY, call), { effect: 'none' })
  store.heal()
  assert.equal((await store.inspect(KEY, call))?.state, 'held')
  assert.deepEqual([store.count('acquire'), store.count('inspect'), store.count('renew')], [1, 2, 0])
  const calls: unknown[] = []
  store.plan((...facts) => {
    calls.push(facts)
    return pass
  })
  await store.release({ key: KEY, owner: 'o' }, call)
  await store.probe(call)
  assert.deepEqual(calls, [
    ['release', 1, KEY, 'o'],
    ['probe', 1, undefined, undefined],
  ])
})

test('hints are lost, late, doubled or kept like everything else', async () => {
  for (const [fault, expected] of [
    [pass, 1],
    [loseRequest, 0],
    [duplicate(10), 2],
    [delayReply(10), 1],
    [hang, 0],
  ] as const) {
    const env = virtualEnvironment(1)
    const store = faultyStore(memoryServer({ environment: env }).connect(), { clock: env.clock })
    store.plan((operation) => (operation === 'hint' ? fault : pass))
    let hints = 0
    await store.watch?.({ key: KEY, owner: 'w' }, () => hints++, call)
    await store.acquire(claim('o'), call)
    await store.release({ key: KEY, owner: 'o' }, call)
    await env.advance(20)
    assert.equal(hints, expected, fault.kind)
  }
})

test('optional members are there where the inner store has them, and what it is passes through', () => {
  const env = virtualEnvironment(1)
  const inner = memoryServer({ environment: env }).connect()
  const { list: _list, revoke: _revoke, watch: _watch, ...bare } = inner
  const full = faultyStore(inner, { clock: env.clock })
  const plain = faultyStore({ ...bare, location: '/a/file' } satisfies Store, { clock: env.clock })
  assert.deepEqual(
    ['list', 'revoke', 'watch', 'location'].map((name) => name in full),
    [true, true, true, false],
  )
  assert.deepEqual(
    ['list', 'revoke', 'watch', 'location'].map((name) => name in plain),
    [false, false, false, true],
  )
  assert.deepEqual([full.name, full.traits], ['faulty(memory)', inner.traits])
})
