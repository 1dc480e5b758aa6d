import assert from 'node:assert/strict'
import test from 'node:test'
import { breakOff, delayReply, delayRequest, loseReply, pass } from '../../src/faults/index.js'
import { sleep } from '../../src/index.js'
import { bed, settling } from '../support/bed.js'

test('B060: the acquire was executed and its answer lost: the key is had all the same, or free soon, not after the TTL', async () => {
  const here = bed({ ttlMs: 30_000, callTimeoutMs: 50 })
  here.store.plan((operation, nth) => (operation === 'acquire' && nth === 1 ? loseReply : pass))
  const lease = await here.runUntil(here.leases.acquire('k', { waitMs: 0 }).catch(() => null))
  assert.equal(lease, null, 'one question that may take 50 ms is over')
  const began = here.env.clock.now()
  assert.ok(await here.runUntil(here.others.acquire('k')))
  assert.ok(here.env.clock.now() - began <= 1000, `${here.env.clock.now() - began} ms`)
  await here.end()
})

test('B060: with time left, the same owner is asked again and finds that the key is its own', async () => {
  const here = bed({ ttlMs: 30_000, callTimeoutMs: 50 })
  here.store.plan((operation, nth) => (operation === 'acquire' && nth === 1 ? loseReply : pass))
  const lease = await here.runUntil(here.leases.acquire('k', { waitMs: 1000 }))
  assert.deepEqual([here.store.count('acquire'), here.store.count('release'), here.ownerOf('k')], [2, 0, lease.owner])
  assert.equal(lease.remainingMs, 30_000 * 0.99 - 2, 'counted from the question that was answered')
  await here.end()
})

test('B131 B173: whatever instant a wait ends or is cancelled at, the key is free for the next one after it failed', async () => {
  for (let loop = 0; loop < 500; loop++) {
    const here = bed({}, `B131/${loop}`)
    const random = here.env.random.fork('plan')
    here.store.plan(() => (random.chance(0.5) ? delayReply(random.below(8)) : delayRequest(random.below(8))))
    const holder = await here.runUntil(here.others.acquire('k'))
    const cancel = new AbortController()
    const waiting = settling(here.leases.acquire('k', { waitMs: loop % 2 ? 100 : 5000, signal: cancel.signal }))
    here.env.clock.timer(100 + random.below(7) - 3, () => void holder.release())
    if (loop % 2 === 0) here.env.clock.timer(100 + random.below(7) - 3, () => cancel.abort())
    await here.advance(400)
    assert.notEqual(waiting.state, 'pending')
    if (waiting.state === 'rejected') {
      const next = await here.runUntil(here.others.tryAcquire('k'))
      assert.ok(next, `loop ${loop}: after a failed wait the key is still taken`)
    } else {
      assert.equal(here.ownerOf('k'), waiting.value?.owner)
    }
    await here.end()
  }
})

test('B173: a request that arrives after its caller has given up is given back', async () => {
  const here = bed()
  here.store.delayRequests(700, 'acquire')
  const cancel = new AbortController()
  const waiting = settling(here.leases.acquire('k', { signal: cancel.signal }))
  await here.advance(50)
  cancel.abort()
  await here.advance(0)
  assert.equal(waiting.state, 'rejected')
  await here.advance(649)
  assert.equal(here.ownerOf('k'), null)
  await here.advance(2)
  assert.equal(here.ownerOf('k'), null, 'its answer came after the cancel, so it was released at once')
  await here.end()
})

test('B198: a renewal that was executed although its answer was lost is no loss', async () => {
  for (const fault of [loseReply, breakOff(true)]) {
    const here = bed()
    here.store.plan((operation, nth) => (operation === 'renew' && nth % 2 === 1 ? fault : pass))
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(20_000)
    assert.equal(lease.held, true)
    await here.end()
  }
})

test('B198: a release that was executed although its answer was lost is no loss: run gives the result', async () => {
  for (const fault of [loseReply, breakOff(true)]) {
    const here = bed()
    here.store.plan((operation, nth) => (operation === 'release' && nth === 1 ? fault : pass))
    const work = here.leases.run('k', () => sleep(here.env.clock, 100).then(() => 'the result'))
    assert.equal(await here.runUntil(work), 'the result', fault.kind)
    await here.end()
  }
})
