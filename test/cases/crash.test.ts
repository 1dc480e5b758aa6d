import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { LeaseLostError } from '../../src/index.js'
import { bed, onBed, settling } from '../support/bed.js'
import { runChild } from '../support/child.js'

const DROPPED = new URL('./children/dropped.js', import.meta.url)

onBed('B024: an absurdly large TTL is refused at call time', async (here) => {
  await assert.rejects(here.leases.acquire('k', { ttlMs: 1e19 }), {
    name: 'RangeError',
    message: /^ttlMs must be .* but got 1e?\d+/,
  })
  assert.equal(here.store.count('acquire'), 0)
})

test('B024: a dropped acquire leaves its own rejection and no other; a loss in a broken store leaves none', async () => {
  const [dropped, loss] = await Promise.all([runChild(DROPPED, ['acquire']), runChild(DROPPED, ['loss'])])
  assert.deepEqual([dropped.code, dropped.stderr, dropped.stdout], [0, '', '["ERR_LEASE_HELD"]\n'])
  assert.deepEqual([loss.code, loss.stderr, loss.stdout], [0, '', '[]\n'])
})

test('B029: nothing but the command line ends the process or prints', () => {
  const src = fileURLToPath(new URL('../../../src/', import.meta.url))
  const library = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('cli'),
  )
  assert.ok(library.length > 20)
  const offenders = library.filter((file) =>
    /process\.(exit\b|abort\b|kill\(process\.pid)|console\./.test(readFileSync(join(src, file), 'utf8')),
  )
  assert.deepEqual(offenders, [])
})

onBed('B029: leases with time left survive a blip of the store', async (here) => {
  const lease = await here.runUntil(here.leases.acquire('k'))
  here.store.fail('unknown')
  await here.advance(800)
  here.store.heal()
  await here.advance(5000)
  assert.equal(lease.held, true)
})

onBed('B095: a consumer whose key is deleted in one iteration loses that iteration and goes on', async (here) => {
  const results: string[] = []
  const consumer = async () => {
    for (let i = 0; i < 20; i++) {
      const work = here.leases.run('job', async () => {
        if (i === 7) await here.others.revoke('job', { force: true })
        return `done ${i}`
      })
      results.push(await work.catch((error) => (error instanceof LeaseLostError ? `lost ${i}` : assert.fail(error))))
    }
  }
  await here.runUntil(consumer())
  assert.deepEqual(
    results,
    Array.from({ length: 20 }, (_, i) => (i === 7 ? 'lost 7' : `done ${i}`)),
  )
})

onBed(
  'B113: the store is down for a minute: waiters, holders and clean-up catch everything and recover',
  async (here) => {
    const holder = await here.runUntil(here.leases.acquire('k'))
    const waiting = settling(here.leases.acquire('k'))
    const bystander = await here.runUntil(here.others.acquire('other'))
    await here.advance(100)
    here.store.fail('unknown')
    await here.advance(60_000)
    assert.deepEqual([holder.held, waiting.state, bystander.held], [false, 'pending', true])
    here.store.heal()
    await here.advance(2000)
    assert.equal(waiting.state, 'resolved')
    await here.advance(10_000)
    assert.equal(waiting.value?.held, true)
  },
)

onBed(
  'B149: the loop is blocked past the TTL with no competitor: the lease is lost by its signal, never by a throw',
  async (here) => {
    const lease = await here.runUntil(here.leases.acquire('k'))
    here.env.clock.block(5000)
    await here.advance(100)
    assert.deepEqual([lease.signal.aborted, lease.held, lease.signal.reason.reason], [true, false, 'expired'])
    assert.equal(await here.runUntil(lease.release()), 'lost')
    assert.ok(await here.runUntil(here.leases.tryAcquire('k')), 'and the key can be had again, as another lease')
  },
)

test('B149: the same with a competitor: it has the key, and the late holder changes nothing for it', async () => {
  const here = bed()
  const lease = await here.runUntil(here.leases.acquire('k'))
  const next = here.others.acquire('k')
  here.env.clock.block(5000)
  const taken = await here.runUntil(next)
  assert.deepEqual([lease.held, taken.held], [false, true])
  assert.equal(await here.runUntil(lease.release()), 'lost')
  await here.advance(5000)
  assert.deepEqual([taken.held, here.ownerOf('k')], [true, taken.owner])
  await here.end()
})
