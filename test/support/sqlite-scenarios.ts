/** What the SQLite store must live through, each as often as asked: a few times in the suite, long in a soak. */
import assert from 'node:assert/strict'
import { hrtime } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ActorOptions, claim, type Hold, stage } from './sqlite-actors.js'
import { openRaw } from './sqlite-raw.js'

export const hostNow = (): number => Number(hrtime.bigint() / 1_000n) / 1_000

/** No two holds overlap, and fences grow in their order. Holds are on one host clock. */
export function assertInOrder(holds: readonly Hold[]): void {
  const ordered = [...holds].sort((a, b) => a.from - b.from)
  ordered.forEach((hold, i) => {
    const before = ordered[i - 1]
    if (!before) return
    assert.ok(
      before.to <= hold.from,
      `fence ${hold.fence} was held from ${hold.from}, fence ${before.fence} until ${before.to}`,
    )
    assert.ok(before.fence < hold.fence, `fence ${hold.fence} came after ${before.fence}`)
  })
}

/** How long after kill -9 of a holder a waiter in another process has the key, in ms, kill by kill. */
export async function takeOversAfterKill(
  count: number,
  holderOptions: ActorOptions = {},
  ttlMs = 10_000,
): Promise<{ afterKill: number; afterEnd: number }[]> {
  return stage(async (_, actor) => {
    const waiter = await actor()
    const gaps: { afterKill: number; afterEnd: number }[] = []
    for (let i = 0; i < count; i++) {
      const holder = await actor(holderOptions)
      const held = claim({ ttlMs })
      const outcome = await holder.acquire(held)
      assert.equal(outcome.kind, 'granted')
      const end = hostNow() + ttlMs
      const next = claim({ ttlMs })
      const obtained = waiter.obtain(next)
      await sleep(30 + Math.random() * 60)
      const killed = hostNow()
      holder.process.kill('SIGKILL')
      const { at } = await obtained
      gaps.push({ afterKill: at - killed, afterEnd: at - end })
      await waiter.release(next)
      await holder.kill()
    }
    return gaps
  })
}

/** B148: everybody opens a cold file at once and works as fast as it can, while others read. */
export async function crowd(
  processes: number,
  cycles: number,
  mode: 'wal' | 'delete',
  reader: boolean,
): Promise<number> {
  return stage(async (folder, actor) => {
    const path = `${folder}/leases.db`
    // A file with something in it keeps its journal mode.
    if (mode === 'delete') {
      const database = openRaw(path)
      database.exec('CREATE TABLE of_an_application (id INTEGER)')
      database.close()
    }
    const actors = await Promise.all(Array.from({ length: processes }, () => actor()))
    const stop = reader ? holdSnapshots(path, mode) : async () => {}
    try {
      const began = hostNow()
      const holds = await Promise.all(actors.map((one) => one.cycles(claim({ ttlMs: 10_000 }), cycles)))
      const tookMs = hostNow() - began
      assert.equal(holds.flat().length, processes * cycles)
      assertInOrder(holds.flat())
      return tookMs
    } finally {
      await stop()
    }
  })
}

/** A reader that stays in its transaction: for good in WAL mode; in DELETE mode, where writers must wait, by turns. */
function holdSnapshots(path: string, mode: 'wal' | 'delete'): () => Promise<void> {
  let stopped = false
  const done = (async () => {
    await sleep(200)
    const database = openRaw(path, { timeout: 5_000 })
    while (!stopped) {
      database.exec('BEGIN')
      database.prepare('SELECT count(*) FROM sqlite_schema').get()
      do await sleep(100)
      while (mode === 'wal' && !stopped)
      database.exec('COMMIT')
      await sleep(50)
    }
    database.close()
  })()
  return async () => {
    stopped = true
    await done
  }
}

/** B150: many processes ask at the moment when a lease ends. Everyone gets it once, nobody before its time. */
export async function crowdAtExpiry(processes: number, rounds: number): Promise<void> {
  await stage(async (_, actor) => {
    const actors = await Promise.all(Array.from({ length: processes }, () => actor()))
    const ttlMs = 50
    for (let round = 0; round < rounds; round++) {
      const name = `round ${round}`
      const grants = await Promise.all(
        actors.map((one) => one.obtain(claim({ name, ttlMs, life: 'outlives-process' }), false)),
      )
      grants.sort((a, b) => (a.fence < b.fence ? -1 : 1))
      grants.forEach((grant, i) => {
        const before = grants[i - 1]
        if (before)
          assert.ok(grant.at >= before.sentAt + ttlMs, `taken ${before.sentAt + ttlMs - grant.at} ms before its end`)
      })
    }
  })
}
