import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conformance } from '../../src/conformance/index.js'
import { StoreError } from '../../src/errors.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import type { Claim, Store } from '../../src/store.js'
import { memoryServer } from '../../src/stores/memory.js'
import { observedStore, type StoreCall } from '../../src/stores/observed.js'
import { plainClaim } from '../support/claims.js'

const environment = virtualEnvironment(1)
const server = memoryServer({ environment })
const call = { signal: new AbortController().signal }
const key = { namespace: 'default', name: 'k' }
const claim = (owner: string): Claim => plainClaim(owner, { key, ttlMs: 100 })

await conformance({
  name: 'observed by a faulty observer',
  test,
  open: async () =>
    observedStore(server.connect(), () => {
      throw new Error('an observer that always throws')
    }),
  wait: environment.advance,
  environment,
  slackMs: 0,
})

test('every call is reported once it has ended, with its verdict and its duration, and without the owner', async () => {
  const calls: StoreCall[] = []
  const slow: Store = { ...memoryServer({ environment }).connect() }
  const { acquire } = slow
  slow.acquire = async (wanted, options) => {
    await environment.advance(7)
    return acquire(wanted, options)
  }
  const store = observedStore(slow, (seen) => calls.push(seen), { environment })
  const granted = await store.acquire(claim('secret-1'), call)
  await store.acquire(claim('secret-2'), call)
  const fence = granted.kind === 'granted' ? granted.fence : 0n
  await store.renew({ ...claim('secret-1'), fence }, call)
  await store.renew({ ...claim('secret-2'), fence }, call)
  await store.inspect(key, call)
  for await (const _ of store.list?.('default', '', call) ?? []);
  await store.revoke?.(key, { force: false }, call)
  const watch = await store.watch?.(claim('secret-1'), () => {}, call)
  watch?.close()
  await store.release(claim('secret-1'), call)
  await store.inspect(key, call)
  await store.probe(call)
  await store.close()
  await assert.rejects(store.inspect(key, call))
  await assert.rejects(async () => {
    for await (const _ of store.list?.('default', '', call) ?? []);
  })

  const seen = calls.map(({ operation, outcome, effect }) => `${operation} ${outcome ?? effect}`)
  // biome-ignore format: a list
  assert.deepEqual(seen, [
    'acquire granted', 'acquire held', 'renew renewed', 'renew lost', 'inspect held', 'list done', 'revoke refusing', 'watch done',
    'release released', 'inspect free', 'probe done', 'close done', 'inspect none', 'list none',
  ])
  assert.deepEqual(
    calls.slice(0, 3).map(({ durationMs }) => durationMs),
    [7, 7, 0],
  )
  assert.deepEqual(calls[0]?.key, key)
  assert.ok(!calls.some((seen) => 'key' in seen && seen.key === undefined))
  const text = JSON.stringify(calls, (_, part) => (typeof part === 'bigint' ? String(part) : part))
  assert.ok(!text.includes('secret'), text)
})

test('an error goes through as it is; one that says nothing of its effect is reported as unknown', async () => {
  const calls: StoreCall[] = []
  const errors = [
    new StoreError('no answer', 'unknown'),
    new StoreError('given back', 'released'),
    new TypeError('broken'),
  ]
  const failing: Store = { ...server.connect(), probe: () => Promise.reject(errors[calls.length]) }
  const store = observedStore(failing, (seen) => calls.push(seen))
  for (const error of errors) await assert.rejects(store.probe(call), (thrown) => thrown === error)
  assert.deepEqual(
    calls.map(({ effect }) => effect),
    ['unknown', 'released', 'unknown'],
  )
  assert.deepEqual(
    calls.map(({ error }) => error),
    errors,
  )
})

test('optional members are there only where the inner store has them', () => {
  const { list: _l, revoke: _r, watch: _w, ...bare } = server.connect()
  const observed = observedStore({ ...bare, location: 'somewhere' }, () => {})
  assert.ok(!('list' in observed) && !('revoke' in observed) && !('watch' in observed))
  assert.equal(observed.location, 'somewhere')
  const full = observedStore(server.connect(), () => {})
  assert.ok(full.list && full.revoke && full.watch)
  assert.ok(!('location' in full))
})
