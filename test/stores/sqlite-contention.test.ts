import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../src/errors.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { claim, stage } from '../support/sqlite-actors.js'
import { count, openRaw, withRaw } from '../support/sqlite-raw.js'
import { crowd, crowdAtExpiry, hostNow } from '../support/sqlite-scenarios.js'

const call = () => ({ signal: new AbortController().signal })

/** The longest pause between two beats of a ticker while `work` runs, in ms. */
async function longestStall(work: () => Promise<unknown>): Promise<number> {
  let last = hostNow()
  let longest = 0
  const ticker = setInterval(() => {
    longest = Math.max(longest, hostNow() - last)
    last = hostNow()
  }, 10)
  try {
    await work()
  } finally {
    clearInterval(ticker)
  }
  return Math.max(longest, hostNow() - last)
}

test('B147: a writer that holds the file for long stalls nothing but the calls that need it', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: `${folder}/leases.db` })
    const held = claim({ ttlMs: 4_000, life: 'outlives-process' })
    const grant = await store.acquire(held, call())
    assert.ok(grant.kind === 'granted')
    const outsider = openRaw(`${folder}/leases.db`)
    outsider.exec('BEGIN IMMEDIATE')
    const stall = await longestStall(async () => {
      // Certainly nothing done: no verdict for the holder, and who wants a key may go on waiting; reading goes on.
      const renewal = store.renew({ ...held, fence: grant.fence }, call())
      const other = store.acquire(claim({ name: 'other' }), call())
      const isRefusal = (error: unknown) =>
        error instanceof StoreError && error.effect === 'none' && /was locked/.test(error.message)
      await Promise.all([
        assert.rejects(renewal, isRefusal),
        other.then((outcome) => {
          assert.ok(outcome.kind === 'not-ready')
          assert.match(outcome.why, /the lease file is locked by another process/)
          assert.ok(outcome.retryAfterMs <= 100)
        }),
      ])
      assert.equal((await store.acquire(claim(), call())).kind, 'held')
      const cancelled = new AbortController()
      const waiting = store.release(held, { signal: cancelled.signal })
      await sleep(300)
      cancelled.abort(new Error('enough'))
      await assert.rejects(waiting, { effect: 'none' })
    })
    outsider.exec('COMMIT')
    outsider.close()
    assert.equal((await store.renew({ ...held, fence: grant.fence }, call())).kind, 'renewed')
    await store.close()
    assert.ok(stall < 60, `the event loop stood still for ${stall} ms`)
  })
})

for (const mode of ['wal', 'delete'] as const) {
  test(`B148: many processes on a cold file in ${mode} mode, beside a reader: no error, no double hold`, async () => {
    await crowd(8, 15, mode, true)
  })
}

test('B150: at the moment of expiry exactly one of many takes over, and not before it', async () => {
  await crowdAtExpiry(16, 2)
})

test('B150: a contender paused between its look and its take takes nothing from the one who came before', async () => {
  await stage(async (folder, actor) => {
    const path = `${folder}/leases.db`
    const store = sqliteStore({ path })
    const dead = await actor()
    // A lease that has expired, and one whose holder is dead: both look free.
    await dead.acquire(claim({ name: 'dead', ttlMs: 60_000 }))
    await dead.kill()
    await store.acquire(claim({ name: 'expired', ttlMs: 50, life: 'outlives-process' }), call())
    await sleep(60)
    for (const name of ['expired', 'dead']) {
      const outsider = openRaw(path)
      outsider.exec('BEGIN IMMEDIATE')
      const late = store.acquire(claim({ name, ttlMs: 4_000 }), call())
      await sleep(20)
      outsider
        .prepare(
          "UPDATE holdfast_leases SET owner = 'winner', fence = fence + 1, expires = ?, term = 9000 WHERE name = ?",
        )
        .run(hostNow() + 9_000, name)
      outsider.exec('COMMIT')
      outsider.close()
      assert.equal((await late).kind, 'held', name)
    }
    await store.close()
  })
})

test('B090: those who lose write nothing, and the key of a dead holder goes when its time is over', async () => {
  await stage(async (folder) => {
    const path = `${folder}/leases.db`
    const [holder, loser] = [sqliteStore({ path }), sqliteStore({ path })]
    await holder.acquire(claim({ ttlMs: 400, life: 'outlives-process' }), call())
    const began = hostNow()
    const observer = openRaw(path)
    const version = () => observer.prepare('PRAGMA data_version').get()
    const before = version()
    let outcome = await loser.acquire(claim(), call())
    while (outcome.kind === 'held' && hostNow() - began < 370) {
      assert.deepEqual(version(), before, 'a refused attempt wrote to the file')
      outcome = await loser.acquire(claim(), call())
      await sleep(1)
    }
    await sleep(began + 405 - hostNow())
    assert.equal((await loser.acquire(claim(), call())).kind, 'granted')
    observer.close()
    await Promise.all([holder.close(), loser.close()])
  })
})

test('B091: rows that killed processes left behind go as others work, with their sightings', async () => {
  await stage(async (folder, actor) => {
    const path = `${folder}/leases.db`
    const [doomed, store] = [await actor(), sqliteStore({ path })]
    await Promise.all(Array.from({ length: 400 }, (_, i) => doomed.acquire(claim({ name: `left ${i}`, ttlMs: 1_500 }))))
    await doomed.kill()
    assert.equal(count(path, 'holdfast_leases'), 400)
    await sleep(1_500)
    for (let i = 0; i < 20; i++) {
      const mine = claim({ name: `cycle ${i}` })
      await store.acquire(mine, call())
      await store.release(mine, call())
    }
    assert.equal(count(path, 'holdfast_leases'), 0)
    await store.close()
  })
})

test('B092: pruning while others hold and renew removes only what is over', async () => {
  await stage(async (folder, actor) => {
    const store = sqliteStore({ path: `${folder}/leases.db` })
    const busy = await actor()
    const held = claim({ name: 'kept alive', ttlMs: 300, life: 'outlives-process' })
    const grant = await store.acquire(held, call())
    assert.ok(grant.kind === 'granted')
    const churn = busy.cycles(claim({ name: 'churn', ttlMs: 1_000 }), 300)
    for (let i = 0; i < 12; i++) {
      await sleep(50)
      assert.equal((await store.renew({ ...held, fence: grant.fence }, call())).kind, 'renewed')
    }
    await churn
    await store.close()
  })
})

test('B198: a renewal whose answer was lost is recognised when it is asked again', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: `${folder}/leases.db` })
    const held = claim({ life: 'outlives-process' })
    const grant = await store.acquire(held, call())
    assert.ok(grant.kind === 'granted')
    for (let i = 0; i < 3; i++) {
      assert.deepEqual(await store.renew({ ...held, fence: grant.fence }, call()), {
        kind: 'renewed',
        fence: grant.fence,
        ttlMs: 1_000,
      })
    }
    await store.close()
  })
})

test('watches leave no timers, handles or rows behind', async () => {
  await stage(async (folder) => {
    const path = `${folder}/leases.db`
    const [holder, store] = [sqliteStore({ path }), sqliteStore({ path })]
    await holder.acquire(claim({ life: 'outlives-process', ttlMs: 60_000 }), call())
    const { readdirSync } = await import('node:fs')
    const descriptors = () => readdirSync('/proc/self/fd').length
    const open = async () => (await store.watch?.(claim(), () => {}, call()))?.close()
    await open()
    const before = [descriptors(), process.getActiveResourcesInfo().length]
    for (let i = 0; i < 500; i++) await open()
    assert.ok(descriptors() <= (before[0] ?? 0), 'file descriptors are left')
    assert.ok(process.getActiveResourcesInfo().length <= (before[1] ?? 0), 'timers or handles are left')
    await Promise.all([holder.close(), store.close()])
    assert.ok(descriptors() < (before[0] ?? 0), 'a closed store still has files open')
  })
})

test('B040: whatever a killed writer had begun is undone, and the key can be taken within its TTL', async () => {
  await stage(async (folder, actor) => {
    const store = sqliteStore({ path: `${folder}/leases.db` })
    for (let i = 0; i < 8; i++) {
      const victim = await actor()
      const cycles = victim.cycles(claim({ ttlMs: 300 }), 100_000).catch(() => {})
      await sleep(20 + i * 7)
      await victim.kill()
      await cycles
      const began = hostNow()
      let outcome = await store.acquire(claim({ ttlMs: 50, life: 'outlives-process' }), call())
      while (outcome.kind === 'held') {
        await sleep(1)
        outcome = await store.acquire(claim({ ttlMs: 50, life: 'outlives-process' }), call())
      }
      assert.ok(hostNow() - began < 350)
    }
    assert.deepEqual(
      withRaw(`${folder}/leases.db`, (raw) => raw.prepare('PRAGMA integrity_check').get()),
      { integrity_check: 'ok' },
    )
    await store.close()
  })
})
