/**
 * Faults that were measured in lock libraries in wide use, each with what its makers' code did. The same situation on
 * ours, with the result that it should have had. (Three more need a quorum of stores.)
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import { LeaseLostError, sleep } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'

test('the answer to a TTL of 200 ms takes 400 ms: no lease is handed out (measured: one that ended 206 ms ago)', async () => {
  const here = bed({ ttlMs: 200, renewEveryMs: 60, callTimeoutMs: 120 })
  here.store.delayReplies(400, 'acquire')
  await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 1000 })), { code: 'ERR_LEASE_UNAVAILABLE' })
  await here.advance(1000)
  assert.equal(here.ownerOf('k'), null, 'and nothing stays behind in the store')
  await here.end()
})

test('the same with a call time-out that would allow the wait: it comes too late to be used', async () => {
  const here = bed({ ttlMs: 200, renewEveryMs: 20, callTimeoutMs: 150 })
  // Two questions are asked before the answer to the first one comes, 250 ms after it was sent.
  here.store.delayReplies(250, 'acquire')
  await assert.rejects(
    here.runUntil(here.leases.acquire('k', { waitMs: 1000 })),
    /too late to be used|no answer within/,
  )
  await here.advance(1000)
  assert.equal(here.ownerOf('k'), null)
  await here.end()
})

onBed(
  'every call hangs after the acquire, TTL 1 s: the signal aborts in time and run settles (measured: neither)',
  async (here) => {
    let abortedAt = Number.NaN
    const run = here.leases.run(
      'k',
      (lease) =>
        new Promise<void>((resolve) => {
          here.store.hang()
          lease.signal.addEventListener('abort', () => {
            abortedAt = here.env.clock.now()
            resolve()
          })
        }),
    )
    await assert.rejects(here.runUntil(run, 2000), { code: 'ERR_LEASE_LOST', reason: 'expired' })
    assert.ok(abortedAt < 1000, `aborted at ${abortedAt} ms`)
    // The release that ends it takes two call time-outs, since nobody answers.
    assert.ok(here.env.clock.now() < 1000 + 2 * 166 + 50)
  },
)

onBed(
  'every call is refused after the acquire: told in time, and the result of the work is not thrown away (measured: told after 2.2 s, result gone)',
  async (here) => {
    let abortedAt = Number.NaN
    const run = here.leases.run('k', async (lease) => {
      here.store.fail('none')
      lease.signal.addEventListener('abort', () => {
        abortedAt = here.env.clock.now()
      })
      await sleep(here.env.clock, 6000)
      return 'the result'
    })
    const lost = await here.runUntil(
      run.then(
        () => assert.fail('it was not protected to the end'),
        (error) => error,
      ),
    )
    assert.ok(lost instanceof LeaseLostError)
    assert.deepEqual([lost.reason, lost.result], ['expired', 'the result'])
    assert.match(lost.message, /the last renewal failed: renew failed on purpose/)
    assert.ok(abortedAt < 1000, `aborted at ${abortedAt} ms`)
  },
)

for (const how of ['rejects', 'hangs'] as const) {
  test(`TTL 500 ms and every renewal ${how}: told once, not held, no rejection escapes (measured: never told, still "acquired")`, async () => {
    const here = bed({ ttlMs: 500 })
    const lease = await here.runUntil(here.leases.acquire('k'))
    let told = 0
    lease.signal.addEventListener('abort', () => told++)
    if (how === 'hangs') here.store.hang('renew')
    else here.store.fail('unknown', 'renew')
    await here.advance(499)
    assert.deepEqual([told, lease.held], [1, false])
    await here.advance(1501)
    assert.deepEqual([told, lease.held], [1, false])
    assert.equal(settling(lease.release()).state, 'pending')
    await here.end()
  })
}
