import assert from 'node:assert/strict'
import test from 'node:test'
import { duplicate, loseReply, loseRequest, pass } from '../../src/faults/index.js'
import { createLeases, LeaseLostError, StoreUnavailableError, sleep } from '../../src/index.js'
import { bed, settling } from '../support/bed.js'
import { runChild } from '../support/child.js'

const EXITS = new URL('./children/exits.js', import.meta.url)

test('B004 B028 B086: work that overran its TTL: run says so and keeps the result; an explicit release is a value', async () => {
  const here = bed({ ttlMs: 200 })
  const overrun = here.leases.run('k', { heartbeat: false }, () => sleep(here.env.clock, 400).then(() => 42))
  const error = await here.runUntil(
    overrun.then(
      () => assert.fail('the overrun must not be missed'),
      (reason) => reason,
    ),
  )
  assert.ok(error instanceof LeaseLostError)
  assert.deepEqual([error.reason, error.result], ['expired', 42])

  const lease = await here.runUntil(here.leases.acquire('k', { heartbeat: false }))
  await here.advance(400)
  assert.equal(await here.runUntil(lease.release()), 'lost')
  await here.end()
})

test('B028: work that failed and work that overran are told apart', async () => {
  const here = bed({ ttlMs: 200 })
  const failed = here.leases.run('k', { heartbeat: false }, async () => {
    await sleep(here.env.clock, 400)
    throw new Error('the mail server said no')
  })
  await assert.rejects(here.runUntil(failed), { message: 'the mail server said no' })
  await here.end()
})

test('B069: process.exit while held is silent, and nothing waits for a collector', async () => {
  const ended = await runChild(EXITS, ['process.exit while held'])
  assert.deepEqual([ended.code, ended.stdout, ended.stderr], [0, '', ''])
})

test('B116 B157: close stops the waits, lets the work end, releases, and only then closes the store', async () => {
  const here = bed()
  const order: string[] = []
  const leases = createLeases(
    {
      ...here.store,
      traits: here.store.traits,
      release: (ref, call) => {
        order.push(`release ${ref.key.name}`)
        return here.store.release(ref, call)
      },
      close: async () => void order.push('close the store'),
    },
    { ttlMs: 1000, environment: here.env },
  )
  await here.runUntil(here.others.acquire('taken'))
  const waiting = settling(leases.acquire('taken'))
  const working = settling(
    leases.run('k', async (lease) => {
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
      order.push(`told: ${lease.signal.reason.reason}`)
      await sleep(here.env.clock, 500)
      order.push('work ended')
    }),
  )
  await here.advance(100)
  const closing = leases.close()
  await here.advance(0)
  assert.equal((waiting.error as { code?: string }).code, 'ERR_LEASE_CLOSED')
  await assert.rejects(leases.acquire('other'), { code: 'ERR_LEASE_CLOSED' })
  await here.runUntil(closing)
  assert.deepEqual(order, ['told: closed', 'work ended', 'release k', 'close the store'])
  assert.equal((working.error as LeaseLostError).reason, 'closed')
  assert.equal(here.ownerOf('k'), null)
  await here.end()
})

test('B116: work that does not end holds up close until its deadline, and no longer', async () => {
  const here = bed()
  await here.runUntil(here.leases.acquire('k'))
  await here.advance(100)
  await here.runUntil(here.leases.close())
  assert.equal(here.env.clock.now(), 988)
  await here.end()
})

test('B122: releases whose connection breaks are each their own problem: every call settles, nothing is freed twice', async () => {
  const here = bed()
  const random = here.env.random.fork('faults')
  here.store.plan((operation) =>
    operation === 'release' ? random.pick([pass, loseReply, loseRequest, duplicate(50)]) : pass,
  )
  const results = new Map<string, number>()
  const one = async (n: number) => {
    for (let round = 0; round < 20; round++) {
      const lease = await here.leases.acquire(`k${n}`)
      await sleep(here.env.clock, random.below(30))
      const result = await lease.release()
      results.set(result, (results.get(result) ?? 0) + 1)
    }
  }
  await here.runUntil(Promise.all(Array.from({ length: 30 }, (_, n) => one(n))))
  assert.equal(
    [...results.values()].reduce((sum, each) => sum + each),
    600,
  )
  assert.ok((results.get('released') ?? 0) > 300, JSON.stringify([...results]))
  await here.end()
})

test('B172: a release whose request or answer is lost is asked again within its time: the key is free soon', async () => {
  for (const fault of [loseReply, loseRequest]) {
    const here = bed()
    here.store.plan((operation, nth) => (operation === 'release' && nth === 1 ? fault : pass))
    const lease = await here.runUntil(here.leases.acquire('k'))
    const began = here.env.clock.now()
    assert.equal(
      await here.runUntil(lease.release()),
      'released',
      `${fault.kind}: it was held to the end, and is free now`,
    )
    assert.ok(here.env.clock.now() - began <= 2 * 166)
    assert.ok(await here.runUntil(here.others.tryAcquire('k')))
    await here.end()
  }
})

test('B201: one release that fails does not stop close from releasing the others; the error lists it', async () => {
  const here = bed()
  for (let n = 0; n < 10; n++) await here.runUntil(here.leases.acquire(`k${n}`))
  here.store.plan((operation, _, key) => (operation === 'release' && key?.name === 'k3' ? loseRequest : pass))
  const error = await here.runUntil(
    here.leases.close().then(
      () => assert.fail('one could not be released'),
      (reason) => reason,
    ),
  )
  assert.ok(error instanceof StoreUnavailableError)
  assert.match(error.message, /could not release "k3":/)
  assert.equal(error.errors.length, 1)
  for (let n = 0; n < 10; n++) if (n !== 3) assert.equal(here.ownerOf(`k${n}`), null)
  await here.advance(5000)
  assert.deepEqual([here.ownerOf('k3'), here.env.clock.pendingTimers], [null, 0], 'no heartbeat has kept it')
  await assert.rejects(here.leases.close(), (again) => again === error)
})
