import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkNames, conformance, type Harness } from '../../src/conformance/index.js'
import type { Store } from '../../src/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { type Clients, collect } from './collect.js'

const check = 'release: frees the key at once, and the answer says so'
const idle: Harness = { name: 'idle', test: () => {}, open: async () => memoryStore(), wait: async () => {} }

test('no two checks have the same name', () => {
  assert.equal(new Set(checkNames).size, checkNames.length)
})

test('a skip needs a check that there is, and a reason', async () => {
  await assert.rejects(
    conformance({ ...idle, skip: [{ test: 'release: nonsense', reason: 'why' }] }),
    /"release: nonsense" is not/,
  )
  await assert.rejects(conformance({ ...idle, skip: [{ test: check, reason: ' ' }] }), /needs a reason/)
})

test('a skipped check does not run, and is shown with its reason', async () => {
  const [ran, shown]: [string[], string[]] = [[], []]
  const record = Object.assign((name: string) => ran.push(name), { skip: (name: string) => shown.push(name) })
  const skip = [{ test: check, reason: 'the server is slow' }]
  const { tests, skipped } = await conformance({ ...idle, test: record, skip })
  assert.deepEqual(shown, [`idle: ${check} (skipped: the server is slow)`])
  assert.deepEqual(skipped, skip)
  assert.ok(ran.length > 50 && !ran.some((name) => name.includes(check)) && !tests.includes(check))
})

test('every check is registered, skipped, or named as not applicable', async () => {
  const { tests, skipped, notApplicable } = await conformance({
    ...idle,
    skip: [{ test: check, reason: 'to see it here' }],
  })
  assert.deepEqual([...tests, ...skipped.map((skip) => skip.test), ...notApplicable].sort(), [...checkNames].sort())
  const because = (what: string) => notApplicable.some((name) => name.startsWith(what))
  assert.ok(because('death: ') && because('revoke: plain asks') && because('expiry: closing the client'))
})

test('every client that a check opens is closed, also when it fails', async () => {
  const open = new Set<Store>()
  const counted: Clients = (server) => () => {
    const store: Store = server.connect()
    open.add(store)
    return {
      ...store,
      renew: () => Promise.reject(new Error('broken')),
      close: async () => void open.delete(store),
    }
  }
  const { failed } = await collect(counted)
  assert.ok(failed.size > 10)
  assert.equal(open.size, 1, 'all but the one that stood in for the process that was killed')
})
