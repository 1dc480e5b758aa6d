import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import test from 'node:test'
import { type CallOptions, createLeases, type Store } from '../../src/index.js'
import { CallScope, Scope } from '../../src/scope.js'
import { memoryStore } from '../../src/stores/memory.js'

test('a real signal, whether it is asked for before the abort or after, with the reason given', () => {
  const reason = new Error('cancelled')
  const early = new Scope()
  const signal = early.realSignal()
  let heard = 0
  signal.addEventListener('abort', () => heard++)
  early.abort(reason)
  early.abort(new Error('later'))
  assert.deepEqual([heard, signal.aborted, signal.reason, early.realSignal() === signal], [1, true, reason, true])
  const late = new Scope()
  late.abort(reason)
  assert.ok(late.realSignal() instanceof AbortSignal)
  assert.deepEqual([late.realSignal().aborted, late.realSignal().reason, late.reason], [true, reason, reason])
})

test('without a reason it is an AbortError, the same for everybody', () => {
  const scope = new Scope()
  assert.ok(!scope.reason)
  scope.abort()
  const { reason } = scope
  assert.ok(reason instanceof DOMException && reason.name === 'AbortError')
  assert.deepEqual([scope.reason === reason, scope.realSignal().reason === reason], [true, true])
})

test('listeners are called once; those removed, before or meanwhile, are not', () => {
  const scope = new Scope()
  const heard: string[] = []
  const removed = () => heard.push('removed')
  const removedMeanwhile = () => heard.push('removed meanwhile')
  scope.addEventListener('abort', removed)
  scope.removeEventListener('abort', removed)
  scope.addEventListener('abort', () => {
    heard.push('first')
    scope.removeEventListener('abort', removedMeanwhile)
    scope.abort()
  })
  scope.addEventListener('abort', removedMeanwhile)
  scope.addEventListener('abort', () => heard.push('last'))
  scope.removeEventListener('abort', () => {})
  scope.abort()
  assert.deepEqual(heard, ['first', 'last'])
})

test('a copy of what a store is called with has its signal too, and the wrapper that copies may put another in its place', () => {
  const call = new CallScope(7)
  const { keepMs, ...rest }: CallOptions & { keepMs?: number } = { ...call }
  assert.equal(keepMs, 7)
  assert.equal(rest.signal, call.signal)
  assert.deepEqual(Object.keys(rest), ['signal'])
  const never = new AbortController().signal
  const other: CallOptions = { ...call, signal: never }
  call.abort()
  assert.deepEqual([rest.signal.aborted, (other.cancellation ?? other.signal).aborted], [true, false])
})

test('the core calls a store with both, and they agree', async () => {
  const calls: [string, CallOptions][] = []
  const right = memoryStore()
  const store: Store = {
    ...right,
    acquire: (claim, call) => {
      calls.push(['acquire', call])
      return right.acquire(claim, call)
    },
    release: (ref, call) => {
      calls.push(['release', call])
      return right.release(ref, call)
    },
    watch: async (ref, onHint, call) => {
      calls.push(['fence' in ref ? 'watch of a holder' : 'watch', call])
      return (await right.watch?.(ref, onHint, call)) ?? { close() {} }
    },
  }
  const leases = createLeases(store)
  await leases.run('k', () => {})
  await leases.close()
  assert.deepEqual(
    calls.map(([name]) => name),
    ['acquire', 'watch of a holder', 'release'],
  )
  for (const [name, { signal, cancellation }] of calls) {
    assert.ok(signal instanceof AbortSignal && cancellation, name)
    assert.equal(signal.aborted, cancellation.aborted, name)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  }
})
