/**
 * A process of its own that does what it is told, line by line: the raw store, driven from outside, so that it can be
 * killed, stopped, or put into another namespace. `sqlite-actors.ts` is the other end.
 */
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { systemEnvironment } from '../../src/environment.js'
import { StoreError } from '../../src/errors.js'
import type { Claim, ClaimRef, HeldRef, Key, Watch } from '../../src/store.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { decode, encode } from './sqlite-lines.js'

const [path = ''] = process.argv.slice(2)
const environment = systemEnvironment()
const store = sqliteStore({ path })
const call = () => ({ signal: new AbortController().signal })
const sleep = (ms: number) => new Promise<void>((resolve) => environment.clock.timer(ms, resolve, { keepAlive: true }))
const say = (line: unknown) => process.stdout.write(`${encode(line)}\n`)

/** What the asker sees of the claims of an actor: `pids: []` stands for this process. */
const ours = (claim: Claim): Claim =>
  claim.life !== 'outlives-process' && claim.life.pids.length === 0
    ? { ...claim, life: { pids: [process.pid] } }
    : claim

/** Asks until it has the key, by hint where `hints`, else every millisecond; tells when it has it, on the host clock. */
async function obtain(claim: Claim, hints: boolean) {
  let wake = () => {}
  let watch: Watch | undefined
  for (;;) {
    const sentAt = environment.host.now()
    const outcome = await store.acquire(ours(claim), call())
    if (outcome.kind === 'granted') {
      watch?.close()
      return { fence: outcome.fence, sentAt, at: environment.host.now() }
    }
    if (!hints) {
      await sleep(1)
      continue
    }
    const hinted = new Promise<void>((resolve) => {
      wake = resolve
    })
    watch ??= await store.watch?.(claim, () => wake(), call())
    const retryAfterMs = outcome.kind === 'held' ? (outcome.retryAfterMs ?? 1_000) : 1_000
    await Promise.race([hinted, sleep(Math.min(retryAfterMs + 1, 1_000))])
  }
}

/** Acquire and release again and again; each hold as an interval on the host clock, with its fence. */
async function cycles(claim: Claim, count: number, holdMs: number) {
  const holds: { from: number; to: number; fence: bigint }[] = []
  for (let i = 0; i < count; i++) {
    const mine = { ...claim, owner: `${claim.owner} ${i}` }
    const { fence, at } = await obtain(mine, false)
    if (holdMs > 0) await sleep(holdMs)
    const to = environment.host.now()
    await store.release(mine, call())
    holds.push({ from: at, to, fence })
  }
  return holds
}

const operations: Record<string, (...args: never[]) => unknown> = {
  about: () => ({
    pid: process.pid,
    identity: environment.host.identity,
    now: environment.host.now(),
    wall: environment.clock.wall(),
  }),
  acquire: (claim: Claim) => store.acquire(ours(claim), call()),
  renew: (held: HeldRef) => store.renew(held, call()),
  release: (ref: ClaimRef, keepMs: number) => store.release(ref, { ...call(), keepMs }),
  revoke: (key: Key, force: boolean) => store.revoke?.(key, { force }, call()),
  inspect: (key: Key) => store.inspect(key, call()),
  probe: () => store.probe(call()),
  obtain,
  cycles,
  /** Whether /proc shows this process to us. */
  sees: (pid: number) => existsSync(`/proc/${pid}/stat`),
  close: () => store.close(),
}

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const [id, name, ...args] = decode(line) as [number, string, ...never[]]
    try {
      say([id, 'ok', await operations[name]?.(...args)])
    } catch (error) {
      const { name, message } = error as Error
      say([id, 'error', { name, message, effect: error instanceof StoreError ? error.effect : undefined }])
    }
  })
  .on('close', () => process.exit(0))
say([0, 'ok', 'ready'])
