import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { createLeases, type LeaseEvent } from '../../src/index.js'
import { memoryStore } from '../../src/stores/memory.js'
import { bed, onBed } from '../support/bed.js'

onBed('the life of a lease, as its observer hears it', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  await here.advance(400)
  here.store.fail('none', 'renew')
  await here.advance(300)
  here.store.heal()
  await here.advance(200)
  await here.runUntil(lease.release())
  const types = here.events.map(({ type }) => type)
  assert.deepEqual(
    types.filter((type, i) => type !== types[i - 1]),
    ['attempt', 'acquired', 'renewed', 'at-risk', 'renewed', 'released'],
  )
  for (const event of here.events) {
    assert.deepEqual([event.namespace, event.key, event.store], ['default', 'k', 'faulty(memory)'])
    assert.ok(!JSON.stringify(event, (_, part) => String(part)).includes(lease.owner), event.type)
  }
  const released = here.events.at(-1)
  assert.ok(
    released?.type === 'released' &&
      released.outcome === 'released' &&
      released.heldForMs === 900 &&
      released.fence === lease.fence,
  )
})

onBed('attempts say how they ended and how long they took', async (here) => {
  await here.runUntil(here.others.acquire('k', { heartbeat: false }))
  here.store.delayReplies(10, 'acquire')
  await here.runUntil(here.leases.tryAcquire('k'))
  here.store.fail('none', 'acquire')
  await here.runUntil(here.leases.tryAcquire('k').catch(() => {}))
  const attempts = here.events.filter((event) => event.type === 'attempt')
  assert.deepEqual(
    attempts.map(({ outcome, durationMs, attempt, holder }) => [outcome, durationMs, attempt, holder]),
    [
      ['held', 10, 1, 'others'],
      ['unavailable', 0, 1, undefined],
    ],
  )
})

test('the same facts come through the diagnostics channels', async () => {
  const heard: LeaseEvent[] = []
  const hear = (event: unknown) => void heard.push(event as LeaseEvent)
  const names = ['attempt', 'acquired', 'renewed', 'at-risk', 'lost', 'released'].map((type) => `holdfast:${type}`)
  for (const name of names) subscribe(name, hear)
  try {
    const here = bed()
    const lease = await here.runUntil(here.leases.acquire('k'))
    await here.advance(400)
    here.store.hang()
    await here.advance(2000)
    await here.runUntil(lease.release())
    await here.end()
    assert.deepEqual(heard, here.events)
    assert.deepEqual(new Set(heard.map(({ type }) => `holdfast:${type}`)), new Set(names))
  } finally {
    for (const name of names) unsubscribe(name, hear)
  }
})

test('an observer that throws changes nothing for the lease; its error becomes a warning', async () => {
  const warned: string[] = []
  const onWarning = (warning: Error) => warned.push(warning.message)
  process.on('warning', onWarning)
  try {
    const here = bed({
      observe: ({ type }) => {
        throw new Error(`observing ${type}`)
      },
    })
    assert.equal(
      await here.runUntil(
        here.leases.run('k', () =>
          here.advance(0).then(
            () => 1,
            () => 2,
          ),
        ),
      ),
      2,
    )
    const lease = await here.runUntil(here.leases.acquire('k'))
    here.store.hang()
    await here.advance(2000)
    assert.equal(lease.signal.aborted, true)
    await here.end()
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(warned.includes('an observer of holdfast threw: observing acquired'), String(warned))
    assert.ok(warned.includes('an observer of holdfast threw: observing lost'))
  } finally {
    process.off('warning', onWarning)
  }
})

test('no event is made when nobody listens', async () => {
  const { emit } = await import('../../src/events.js')
  emit(new Set(), 'renewed', () => assert.fail('made'))
})

test('an async observer that rejects becomes a warning, and ends nothing', async () => {
  const warnings: string[] = []
  const listener = (warning: Error) => warnings.push(warning.message)
  process.on('warning', listener)
  try {
    const leases = createLeases(memoryStore(), {
      observe: async () => {
        throw new Error('metrics down')
      },
    })
    assert.equal(await leases.run('job', () => 7), 7)
    await leases.close()
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(warnings.length > 0 && warnings.every((text) => text === 'an observer of holdfast threw: metrics down'))
  } finally {
    process.off('warning', listener)
  }
})

onBed(
  'whoever comes later hears of what follows, of leases that were held before too, until they have enough',
  async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k'))
    const heard: string[] = []
    const hear = (event: LeaseEvent) => void heard.push(event.type)
    const stop = here.leases.observe(hear)
    const stopAgain = here.leases.observe(hear)
    await here.advance(400)
    stop()
    await here.advance(400)
    assert.deepEqual(heard, ['renewed', 'renewed', 'renewed'], 'twice the first, once the second')
    stopAgain()
    stopAgain()
    await here.runUntil(lease.release())
    assert.equal(heard.length, 3)
    assert.equal(here.events.at(-1)?.type, 'released', 'the observer of the options hears to the end')
    assert.throws(() => here.leases.observe(null as never), /listener must be a function, but got null/)
  },
)

onBed('an observer may stop another, and itself, while an event is told', async (here) => {
  const heard: string[] = []
  const stops = ['a', 'b'].map((name) =>
    here.leases.observe(({ type }) => {
      heard.push(`${name} ${type}`)
      for (const stop of stops) stop()
      here.leases.observe(({ type }) => void heard.push(`late ${type}`))
    }),
  )
  await here.runUntil(here.leases.tryAcquire('k').then((lease) => lease?.release()))
  assert.deepEqual(heard, [
    'a attempt',
    'b attempt',
    'late acquired',
    'late acquired',
    'late released',
    'late released',
  ])
})

onBed('a release that finds nothing is how a loss is learnt of; after another loss it is none', async (here) => {
  const gone = await here.runUntil(here.leases.acquire('gone', { heartbeat: false }))
  const revoked = await here.runUntil(here.leases.acquire('revoked'))
  await here.runUntil(here.others.revoke('gone', { force: true }))
  await here.runUntil(here.others.revoke('revoked', { force: true }))
  await here.advance(400)
  assert.equal(await here.runUntil(gone.release()), 'lost')
  assert.equal(await here.runUntil(revoked.release()), 'lost')
  const ends = here.events.flatMap((event) =>
    event.type === 'lost' || event.type === 'released'
      ? [[event.key, event.type, 'reason' in event ? event.reason : event.outcome]]
      : [],
  )
  assert.deepEqual(ends, [
    ['revoked', 'lost', 'missing'],
    ['gone', 'lost', 'missing'],
    ['gone', 'released', 'lost'],
    ['revoked', 'released', 'lost'],
  ])
})

onBed('the keys that are held are those of leases that would say so', async (here) => {
  const first = await here.runUntil(here.leases.acquire('first'))
  await here.runUntil(here.leases.acquire('second', { heartbeat: false }))
  assert.deepEqual(here.leases.heldKeys(), ['first', 'second'])
  await here.advance(990)
  assert.deepEqual(here.leases.heldKeys(), ['first'])
  await here.runUntil(first.release())
  assert.deepEqual(here.leases.heldKeys(), [])
})
