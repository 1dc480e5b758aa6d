import assert from 'node:assert/strict'
import test from 'node:test'
import { inspect } from 'node:util'

import { type Bed, bed, onBed, settling } from '../support/bed.js'

onBed('a lease shows its fence as text in JSON, and its owner nowhere', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  assert.deepEqual(JSON.parse(JSON.stringify(lease)), {
    key: 'k',
    fence: String(lease.fence),
    ttlMs: 1000,
    remainingMs: 988,
  })
  assert.deepEqual([typeof lease.fence, lease.key, lease.ttlMs], ['bigint', 'k', 1000])
  assert.match(lease.owner, /^[\w-]{27}$/)
  for (const text of [
    inspect(lease, { depth: 9 }),
    JSON.stringify(lease),
    String(Object.keys(lease)),
    JSON.stringify({ ...lease }, (_, part) => String(part)),
  ]) {
    assert.ok(!text.includes(lease.owner), text)
  }
  assert.match(inspect(lease), /^Lease "k" \{ fence: \d+n, remainingMs: 988 \}$/)
})

onBed('after a release it is not held, its signal is quiet, and a second release is the same release', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  const first = lease.release()
  assert.deepEqual([lease.held, lease.remainingMs], [false, 0])
  assert.equal(await here.runUntil(lease.release()), await here.runUntil(first))
  assert.throws(() => lease.assertHeld(), { code: 'ERR_LEASE_LOST', message: /was released/ })
  await here.advance(5000)
  assert.deepEqual([here.store.count('release'), lease.signal.aborted], [1, false])
})

onBed('await using releases', async (here) => {
  const scope = async () => {
    await using lease = await here.leases.acquire('k')
    return lease.owner === here.ownerOf('k')
  }
  assert.equal(await here.runUntil(scope()), true)
  assert.equal(here.ownerOf('k'), null)
})

onBed('run passes on what the work returns, with and without options, and releases', async (here) => {
  assert.equal(await here.runUntil(here.leases.run('k', () => 5)), 5)
  assert.equal(await here.runUntil(here.leases.run('k', { waitMs: 10 }, async (lease) => lease.key)), 'k')
  assert.equal(here.ownerOf('k'), null)
  assert.deepEqual(
    here.events.map(({ type }) => type),
    ['attempt', 'acquired', 'released', 'attempt', 'acquired', 'released'],
  )
})

onBed('minHoldMs: released early, the key stays taken for the rest of it, and then is free', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k', { minHoldMs: 3000 }))
  await here.advance(500)
  assert.equal(await here.runUntil(lease.release()), 'released')
  const next = here.others.acquire('k')
  assert.equal((await here.runUntil(here.others.inspect('k')))?.state, 'kept')
  await here.runUntil(next)
  assert.ok(here.env.clock.now() >= 3000 && here.env.clock.now() <= 3020, `${here.env.clock.now()} ms`)
})

onBed('minHoldMs: work that took longer releases at once', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k', { minHoldMs: 3000 }))
  await here.advance(3001)
  await here.runUntil(lease.release())
  assert.ok(await here.runUntil(here.others.tryAcquire('k')))
})

test('lockDelayMs: a release while held frees at once; after a loss the key stays taken for the delay, not longer', async () => {
  const here = bed({ lockDelayMs: 2000 })
  const first = await here.runUntil(here.leases.acquire('k'))
  await here.runUntil(first.release())
  const second = await here.runUntil(here.others.acquire('k', { waitMs: 0 }))
  await here.runUntil(second.release())

  const began = here.env.clock.now()
  const lost = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  const next = here.others.acquire('k')
  await here.advance(990)
  assert.deepEqual([lost.held, await here.runUntil(lost.release())], [false, 'lost'])
  await here.runUntil(next)
  const tookMs = here.env.clock.now() - began
  assert.ok(tookMs >= 988 + 2000 && tookMs <= 3020, `${tookMs} ms`)
  await here.end()
})

test('lockDelayMs: the holder that vanished: taken for the TTL and the delay', async () => {
  const here = bed({ lockDelayMs: 2000 })
  await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  here.store.loseRequests()
  await here.runUntil(here.others.acquire('k'))
  assert.ok(here.env.clock.now() >= 3000 && here.env.clock.now() <= 3020, `${here.env.clock.now()} ms`)
  await here.end()
})

onBed(
  'maxHoldMs: lost with that reason, however well the heartbeat works, and freed when the work has let go',
  async (here) => {
    const run = settling(
      here.leases.run('k', { maxHoldMs: 2500 }, async (lease) => {
        await new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
        return here.env.clock.now()
      }),
    )
    await here.advance(2500)
    assert.deepEqual(
      [(run.error as { reason?: string }).reason, (run.error as { result?: unknown }).result],
      ['max-hold', 2500],
    )
    assert.equal(here.ownerOf('k'), null)
  },
)

test('maxHoldMs: in the same tick after a block that outlasted it, it is not held', async () => {
  const here = bed({ ttlMs: 10_000 })
  const lease = await here.runUntil(here.leases.acquire('k', { maxHoldMs: 1000 }))
  here.env.clock.block(1500)
  assert.equal(lease.held, false)
  assert.equal(lease.signal.reason.reason, 'max-hold')
  await here.end()
})

onBed(
  'a plain revoke: the holder is told at its next heartbeat or hint, and the key is free when it lets go',
  async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k'))
    assert.deepEqual(await here.runUntil(here.others.revoke('k')), { kind: 'refusing' })
    await here.advance(120)
    assert.deepEqual([lease.signal.aborted, lease.signal.reason.reason], [true, 'revoked'])
    assert.equal(await here.runUntil(here.others.tryAcquire('k')), null, 'it stays taken until its holder lets go')
    await here.runUntil(lease.release())
    assert.ok(await here.runUntil(here.others.tryAcquire('k')))
  },
)

onBed('a forced revoke: free at once, the old holder is told', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  assert.deepEqual(await here.runUntil(here.others.revoke('k', { force: true })), { kind: 'freed' })
  assert.ok(await here.runUntil(here.others.tryAcquire('k')))
  await here.advance(120)
  assert.equal(lease.signal.reason.reason, 'taken')
  assert.deepEqual(await here.runUntil(here.others.revoke('nobody has it')), { kind: 'absent' })
})

/** What each renewal from now on says of whose death frees the lease. */
function livesTold({ store }: Bed): unknown[] {
  const told: unknown[] = []
  const { renew } = store
  store.renew = (held, call) => {
    told.push(held.life)
    return renew.call(store, held, call)
  }
  return told
}

onBed('setLife is told with a renewal, again until one gets through, and then no more', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  const told = livesTold(here)
  here.store.fail('none', 'renew')
  await assert.rejects(here.runUntil(lease.setLife({ pids: [7, 8] })), { code: 'ERR_LEASE_UNAVAILABLE' })
  here.store.heal()
  await here.advance(700)
  assert.ok(told.length >= 3)
  assert.deepEqual(
    told.map((life) => life !== undefined),
    [true, true, ...told.slice(2).map(() => false)],
  )
  assert.deepEqual(told[1], { pids: [7, 8] })
  await assert.rejects(lease.setLife({ pids: [] }), TypeError)
  await here.runUntil(lease.release())
  await assert.rejects(lease.setLife({ pids: [7] }), { code: 'ERR_LEASE_LOST' })
})

onBed(
  'with a lock delay no death frees it, whatever setLife says',
  async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k'))
    const told = livesTold(here)
    await here.runUntil(lease.setLife({ pids: [7] }))
    assert.deepEqual(told, ['outlives-process'])
    await here.runUntil(lease.release())
  },
  { lockDelayMs: 100 },
)
