/**
 * Whole processes with the library, whose clocks do not agree: never two that believe at once, and a take-over when
 * the record has been watched for its TTL and lock delay, also by contenders that come and go.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeaseWorker, type WorkerOptions } from '../support/lease-workers.js'
import { privileged } from '../support/sqlite-hosts.js'

const TTL_MS = 1000
const LOCK_DELAY_MS = 300
/** What observing takes beyond TTL and lock delay (2 % and 50 ms), and starting a contender on a busy machine. */
const SLACK_MS = 26 + 50 + 700

/** In a mount namespace with another file in the place of `path`. */
function withFile(folder: string, path: string, text: string): string[] {
  const fake = join(folder, 'fake')
  writeFileSync(fake, text)
  return ['unshare', '--mount', 'sh', '-ec', `mount --bind ${fake} ${path}; exec "$@"`, 'sh']
}

const WORLDS: Record<string, (folder: string) => string[]> = {
  'another boot id': (folder) =>
    withFile(folder, '/proc/sys/kernel/random/boot_id', '11111111-2222-3333-4444-555555555555\n'),
  'another time namespace': () => [
    'unshare',
    '--time',
    '--boottime',
    '50000',
    '--monotonic',
    '1000',
    '--fork',
    '--kill-child',
  ],
}

async function stage(
  world: string,
  scene: (start: (options?: Partial<WorkerOptions>) => LeaseWorker, through: string[]) => Promise<void>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-believing-'))
  const workers: LeaseWorker[] = []
  const start = (options: Partial<WorkerOptions> = {}) => {
    const worker = new LeaseWorker({
      path: join(folder, 'leases.db'),
      ttlMs: TTL_MS,
      lockDelayMs: LOCK_DELAY_MS,
      ...options,
    })
    workers.push(worker)
    return worker
  }
  try {
    await scene(start, WORLDS[world]?.(folder) ?? [])
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()))
    rmSync(folder, { recursive: true, force: true })
  }
}

for (const world of Object.keys(WORLDS)) {
  test(
    `${world}: contenders that come and go never get what is renewed, and take over what is not`,
    privileged,
    async (t) => {
      await stage(world, async (start, through) => {
        const holder = start({ through })
        await holder.hear('held')
        const here = start({ once: true })
        await here.hear('refused')
        assert.notEqual(holder.told[0]?.clock, here.told[0]?.clock, 'the worlds must differ, or this shows nothing')
        for (let i = 0; i < 6; i++) {
          const contender = start({ once: true })
          await contender.verdict()
          assert.equal(contender.told.at(-1)?.event, 'refused', JSON.stringify([holder.told, contender.told]))
          await sleep(TTL_MS / 4)
        }
        assert.equal((await holder.ask()).held, true)

        await holder.kill()
        const diedAt = performance.now()
        for (;;) {
          const contender = start({ once: true })
          await contender.verdict()
          const tookMs = performance.now() - diedAt
          if (contender.told.some(({ event }) => event === 'held')) {
            t.diagnostic(`taken over ${Math.round(tookMs)} ms after the death`)
            // The last renewal was written at most a heartbeat before the death.
            assert.ok(tookMs >= TTL_MS + LOCK_DELAY_MS - TTL_MS / 3 - 50, `${tookMs} ms`)
            assert.ok(tookMs <= TTL_MS + LOCK_DELAY_MS + SLACK_MS, `${tookMs} ms`)
            return
          }
          await sleep(100)
        }
      })
    },
  )

  test(`${world}: a holder that was stopped past its TTL does not believe when it goes on`, privileged, async () => {
    await stage(world, async (start, through) => {
      const holder = start({ through })
      const first = await holder.hear('held')
      const waiter = start()
      await waiter.hear('started')
      // The process itself, and not only the one that made its namespace.
      const tree = [holder.process.pid ?? 0, ...childrenOf(holder.process.pid ?? 0)]
      for (const pid of tree) process.kill(pid, 'SIGSTOP')
      const second = await waiter.hear('held')
      assert.ok(BigInt(second.fence ?? 0) > BigInt(first.fence ?? 0))
      for (const pid of tree) process.kill(pid, 'SIGCONT')
      assert.equal((await holder.ask()).held, false)
      assert.equal((await holder.hear('lost')).reason, 'expired')
      assert.equal((await waiter.ask()).held, true)
    })
  })
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}
