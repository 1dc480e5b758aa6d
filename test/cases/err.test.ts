import assert from 'node:assert/strict'
import {
  AcquireTimeoutError,
  createLeases,
  LeaseLostError,
  type Store,
  StoreError,
  StoreUnavailableError,
  StoreUnsafeError,
} from '../../src/index.js'
import { onBed, settling } from '../support/bed.js'

const failing = (store: Store, error: unknown): Store => ({
  ...store,
  traits: store.traits,
  acquire: () => Promise.reject(error),
})

onBed(
  'B003: held, unreachable, unsafe, misused and lost are told apart by class and code, with the cause attached',
  async (here) => {
    const { env, leases, store } = here
    const holder = await here.runUntil(here.others.acquire('k'))
    const outcome = (work: Promise<unknown>) =>
      here.runUntil(
        work.then(
          () => assert.fail('must reject'),
          (error) => error,
        ),
      )

    const held = await outcome(leases.acquire('k', { waitMs: 100 }))
    assert.ok(held instanceof AcquireTimeoutError)
    assert.deepEqual([held.code, held.key, held.holder, held.waitedMs], ['ERR_LEASE_HELD', 'k', 'others', 100])
    assert.match(held.message, /^"k" is held by others; waited 100 ms, asked \d+ times$/)

    const refused = new StoreError('connect ECONNREFUSED', 'none')
    const down = await outcome(createLeases(failing(store, refused), { environment: env }).acquire('k'))
    assert.ok(down instanceof StoreUnavailableError)
    assert.deepEqual([down.code, down.cause], ['ERR_LEASE_UNAVAILABLE', refused])
    assert.match(down.message, /could not acquire "k": connect ECONNREFUSED/)

    const unsafe = new StoreUnsafeError('maxmemory-policy may evict leases')
    assert.equal(await outcome(createLeases(failing(store, unsafe), { environment: env }).acquire('k')), unsafe)
    assert.equal((await outcome(leases.acquire(Symbol.iterator as never))).name, 'TypeError')

    await here.others.revoke('k', { force: true })
    await here.advance(400)
    const lost = holder.signal.reason
    assert.ok(lost instanceof LeaseLostError)
    assert.deepEqual([lost.code, lost.reason], ['ERR_LEASE_LOST', 'missing'])
  },
)

onBed('B003: no error, message or JSON of one carries an owner token', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  const errors: Error[] = []
  await here.runUntil(here.others.acquire('k', { waitMs: 10 })).catch((error) => errors.push(error))
  here.store.fail('unknown')
  await here.runUntil(lease.renew()).catch((error) => errors.push(error))
  await here.advance(1000)
  errors.push(lease.signal.reason)
  assert.equal(errors.length, 3)
  const { inspect } = await import('node:util')
  const text = [
    ...errors.map((error) => inspect(error, { depth: 9, showHidden: true })),
    ...errors.map((error) => JSON.stringify(error)),
    inspect(lease),
    JSON.stringify(lease),
  ]
  for (const each of text) assert.ok(!each.includes(lease.owner), each)
})

onBed(
  'B009: the error of the work is what run rejects with; what the release found is attached to it',
  async (here) => {
    const business = new Error('business')
    const gone = here.leases.run('k', async () => {
      await here.others.revoke('k', { force: true })
      throw business
    })
    await assert.rejects(here.runUntil(gone), (error) => error === business)
    assert.equal((business as { releaseError?: unknown }).releaseError instanceof LeaseLostError, true)

    const second = Object.freeze(new Error('frozen'))
    const down = here.leases.run('j', () => {
      here.store.hang()
      throw second
    })
    await assert.rejects(here.runUntil(down), (error) => error === second)
    const primitive = here.leases.run('i', () => Promise.reject('a string'))
    here.store.heal()
    await assert.rejects(here.runUntil(primitive), (error) => error === 'a string')
  },
)

onBed(
  'B074: released, never lost, lost and free, lost and taken are told apart by values, not by text',
  async (here) => {
    const fresh = () => here.runUntil(here.leases.acquire('k', { heartbeat: false, waitMs: 5000 }))
    const held = await fresh()
    assert.equal(await here.runUntil(held.release()), 'released')

    const expired = await fresh()
    await here.advance(1000)
    assert.deepEqual([await here.runUntil(expired.release()), expired.signal.reason.reason], ['lost', 'expired'])

    const replaced = await fresh()
    await here.others.revoke('k', { force: true })
    const next = await here.others.tryAcquire('k')
    await assert.rejects(here.runUntil(replaced.renew()), { code: 'ERR_LEASE_LOST', reason: 'taken' })
    assert.equal(await here.runUntil(replaced.release()), 'lost')
    await here.runUntil(next?.release() ?? assert.fail('it was free'))

    const deleted = await fresh()
    await here.others.revoke('k', { force: true })
    await assert.rejects(here.runUntil(deleted.renew()), { code: 'ERR_LEASE_LOST', reason: 'missing' })

    const unheard = await fresh()
    here.store.hang()
    assert.equal(await here.runUntil(unheard.release()), 'unknown')
  },
)

onBed(
  "B077: our own time-out is an AcquireTimeoutError; a cancelled wait rejects with the signal's own reason",
  async (here) => {
    await here.runUntil(here.others.acquire('k'))
    await assert.rejects(here.runUntil(here.leases.acquire('k', { waitMs: 200 })), { name: 'AcquireTimeoutError' })

    for (const reason of [new Error('the user left'), 'a string', undefined]) {
      const cancel = new AbortController()
      const waiting = settling(here.leases.acquire('k', { signal: cancel.signal }))
      await here.advance(100)
      cancel.abort(reason)
      await here.advance(0)
      assert.equal(waiting.state, 'rejected')
      assert.equal(waiting.error, cancel.signal.reason)
      await assert.rejects(
        here.leases.acquire('k', { signal: cancel.signal }),
        (error) => error === cancel.signal.reason,
      )
    }
  },
)
