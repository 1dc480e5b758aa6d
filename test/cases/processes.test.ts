/** What `held.test.ts` shows in virtual time, once in real processes with real time. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { runChild } from '../support/child.js'

const HOLDER = new URL('./children/holder.js', import.meta.url)

interface Told {
  readonly error: string
  readonly reason: string
  readonly abortedAfterMs: number
  /** How late this machine ran a 5 ms interval at worst: no timer can promise more. */
  readonly worstLateness: number
  readonly heldAfterPause: boolean | null
  readonly held: boolean
}

async function told(what: string, args: readonly string[] = []): Promise<Told> {
  const ended = await runChild(HOLDER, [what, ...args], {
    onStderr(child, text) {
      if (what !== 'is stopped' || text !== 'holding\n') return
      child.kill('SIGSTOP')
      setTimeout(() => child.kill('SIGCONT'), 1600)
    },
  })
  assert.deepEqual([ended.code, ended.signal], [0, null], ended.stderr)
  assert.equal(ended.stderr, what === 'is stopped' ? 'holding\n' : '', 'it must say nothing on stderr')
  const result = JSON.parse(ended.stdout) as Told
  assert.equal(result.error, 'ERR_LEASE_LOST')
  assert.equal(result.held, false)
  return result
}

function inTime({ abortedAfterMs, worstLateness }: Told): void {
  assert.ok(
    abortedAfterMs < 1000 + worstLateness,
    `aborted after ${abortedAfterMs} ms; timers were ${worstLateness} ms late`,
  )
}

/** Each process mostly sleeps, so several run at once. */
test('real processes', { concurrency: 4 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-held-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const all: Promise<void>[] = []
  for (const where of ['memory', 'SQLite'] as const) {
    const args = (what: string) => (where === 'memory' ? [] : [join(folder, `${what}.db`)])
    for (const [what, reason] of [
      ['hangs', 'expired'],
      ['fails', 'expired'],
      ['is deleted', 'missing'],
      ['is replaced', 'taken'],
    ] as const) {
      const name = `${where}: the store or the key ${what}: it is told within a second, and ends by itself`
      all.push(
        t.test(name, async () => {
          const result = await told(what, args(what))
          assert.equal(result.reason, reason)
          inTime(result)
        }),
      )
    }
    for (const what of ['blocks', 'is stopped'] as const) {
      const name = `${where}: it ${what} for 1.5 s: not held in the first tick after that, and it ends by itself`
      all.push(
        t.test(name, async () => {
          const result = await told(what, args(what))
          assert.equal(result.reason, 'expired')
          assert.equal(result.heldAfterPause, false)
        }),
      )
    }
  }
  await Promise.all(all)
})
