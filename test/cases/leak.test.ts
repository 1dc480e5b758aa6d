import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { createLeases, type Store } from '../../src/index.js'
import { bed, settling } from '../support/bed.js'
import { runChild } from '../support/child.js'
import type { Load } from '../support/leaks.js'

const LEAKS = new URL('./children/leaks.js', import.meta.url)

async function leaks(kind: string, load: Load, path?: string): Promise<string[]> {
  const args = [kind, JSON.stringify(load), ...(path === undefined ? [] : [path])]
  const ended = await runChild(LEAKS, args, { flags: ['--expose-gc'] })
  assert.deepEqual([ended.code, ended.stderr], [0, ''])
  return JSON.parse(ended.stdout) as string[]
}

/** Short forms; more of it is `npm run soak -- leaks`. */
test('B087 B169: memory: 4,000 cycles, 500 losses, 30,000 keys, 500 refusals: heap, listeners, timers, handles and rows are as before', async () => {
  assert.deepEqual(await leaks('memory', { cycles: 4000, lost: 500, keys: 30_000, refused: 500 }), [])
})

test('B087: the check finds what a leaky store leaves behind', async () => {
  const found = await leaks('leaky', { cycles: 1000, lost: 10, keys: 20_000, refused: 10 })
  assert.ok(
    found.some((each) => /more bytes of heap/.test(each)),
    String(found),
  )
  assert.ok(
    found.some((each) => /more rows/.test(each)),
    String(found),
  )
})

test('B087 B169: SQLite: 4,000 cycles, 500 losses, 500 refusals: the same', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-leak-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const load = { cycles: 4000, lost: 500, keys: 500, refused: 500 }
  assert.deepEqual(await leaks('sqlite', load, join(folder, 'leases.db')), [])
})

test('B091: keys whose holders never came back are gone after their TTL', async () => {
  const here = bed()
  for (let n = 0; n < 3000; n++) await here.runUntil(here.leases.tryAcquire(`abandoned ${n}`, { heartbeat: false }))
  here.store.loseRequests('release')
  await here.advance(2000)
  let rows = 0
  await here.runUntil(
    (async () => {
      for await (const _ of here.others.list()) rows++
    })(),
  )
  assert.equal(rows, 0)
  await here.end()
})

for (const how of ['fail', 'hang'] as const) {
  test(`B102: an outage (${how}) of three minutes with 50 leases and 50 waiters: listeners, timers and calls do not pile up`, async () => {
    const here = bed()
    let open = 0
    let worst = 0
    // A call is over when it is answered, or when its signal says that the answer can no longer matter.
    const counted: Store = { ...here.store, traits: here.store.traits }
    counted.acquire = (claim, call) => {
      worst = Math.max(worst, ++open)
      let over = false
      const end = () => {
        if (!over) open--
        over = true
      }
      call.signal.addEventListener('abort', end)
      const answer = here.store.acquire(claim, call)
      answer.then(end, end)
      return answer
    }
    const leases = createLeases(counted, { ttlMs: 1000, environment: here.env })
    const signal = new AbortController().signal
    const held = await here.runUntil(Promise.all(Array.from({ length: 50 }, (_, n) => leases.acquire(`k${n}`))))
    const waiters = held.map((lease) => settling(leases.acquire(lease.key, { signal })))
    await here.advance(100)
    const listeners = getEventListeners(signal, 'abort').length
    if (how === 'fail') here.store.fail('unknown')
    else here.store.hang()
    for (let step = 0; step < 18; step++) {
      await here.advance(10_000)
      assert.ok(here.env.clock.pendingTimers <= 50 * 20, `${here.env.clock.pendingTimers} timers`)
    }
    // A waiter asks a few times in a TTL; an answer that comes later than that changes nothing.
    assert.ok(worst <= 50 * 10, `${worst} questions were open at once`)
    assert.equal(getEventListeners(signal, 'abort').length, listeners)
    here.store.heal()
    await here.advance(60_000)
    assert.ok(waiters.every(({ state }) => state === 'resolved'))
    await here.runUntil(leases.close())
    await here.end()
  })
}

test('B158 B169: fifty waits at once, with one signal for all, print no warning', async () => {
  const warned: string[] = []
  const onWarning = (warning: Error) => warned.push(warning.message)
  process.on('warning', onWarning)
  const here = bed()
  const cancel = new AbortController()
  await here.runUntil(here.others.acquire('k'))
  for (let n = 0; n < 25; n++) {
    settling(here.leases.acquire('k'))
    settling(here.leases.acquire('k', { signal: cancel.signal }))
  }
  await here.advance(100)
  cancel.abort()
  await here.end()
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', onWarning)
  assert.deepEqual(warned, [])
})
