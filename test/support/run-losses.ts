/** Every way in which `holdfast run` can lose its lease, or its life: is all of its command dead before the next one starts? */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { alive, type Bench, eventually, type Running } from '../cli/support.js'

const source = (name: string) => fileURLToPath(new URL(`../../../test/support/${name}`, import.meta.url))
const FAMILY = ['command', 'child', 'grandchild', 'session', 'orphan']

/** What happens to a running `holdfast`, by name. */
export const LOSSES = {
  hang: 'its file locks hang for ever: it is blocked within the call',
  error: 'its file locks fail',
  revoke: 'holdfast revoke',
  stop: 'SIGSTOP of holdfast',
  kill: 'kill -9 of holdfast',
  watchdog: 'kill -9 of its watchdog, and half a second later of holdfast',
  both: 'kill -9 of both at once',
  sentinel: 'kill -9 of the sentinel, and half a second later of holdfast and the watchdog at once',
  /** The control: nobody is left who could end the command. Not caught, and the round must say so. */
  all: 'kill -9 of holdfast, watchdog and sentinel at once',
} as const
export type Loss = keyof typeof LOSSES

export interface Round {
  /** From the last sign of life of the family to the start of the next holder's command; negative when they overlapped. */
  readonly gapMs: number
  /** Who was still alive when the next holder's command started. */
  readonly alive: readonly string[]
  /** From the fault to that start. */
  readonly afterMs: number
  /** Of the holdfast that lost its lease; `null` when it was killed. */
  readonly code: number | null
  readonly stderr: string
}

/** A library that makes the file locks of one process fail. */
export function failingLocks(bench: Bench): string {
  const shim = join(bench.folder, 'failing-locks.so')
  if (!existsSync(shim)) execFileSync('cc', ['-shared', '-fPIC', '-o', shim, source('failing-locks.c'), '-ldl'])
  return shim
}

/** The next holder's command: who of the family is there, and what time is it? */
const NEXT = `for name in ${FAMILY.join(' ')}; do
  read -r pid < "$0/$name.pid"
  read -r stat < "/proc/$pid/stat" || continue
  case \${stat##*) } in Z*|X*) ;; *) echo "alive $name" ;; esac
done 2>/dev/null
echo "started $(date +%s%N)"`

/** Longer than any TTL that is used here. */
const STUCK_MS = 6_000

export async function round(bench: Bench, loss: Loss, ttl: string, delayMs: number): Promise<Round> {
  const folder = join(bench.folder, `${loss}-${delayMs}-${process.hrtime.bigint()}`)
  mkdirSync(folder)
  const fault = join(folder, 'fault')
  const env = { LD_PRELOAD: failingLocks(bench), FAILING_LOCKS: fault }
  const key = `round ${folder}`
  const first = bench.start(['run', '--ttl', ttl, key, '--', 'python3', source('family.py'), folder], { env })
  await eventually('the family is there', () => FAMILY.every((name) => ticks(folder, name).length > 0), 20_000)
  for (const name of FAMILY) bench.mind(pidOf(folder, name))
  const next = bench.start(['run', '--ttl', ttl, key, '--', 'sh', '-c', NEXT, folder])
  await next.saw(/waiting/)
  await pause(delayMs)
  const faultAt = Date.now()
  await inflict(bench, loss, first, key, fault)
  // Stopped within its write, a fraction of a millisecond, it keeps everybody else from writing until it goes on.
  if (loss === 'stop') void pause(STUCK_MS).then(() => first.process.kill('SIGCONT'))
  const { stdout } = await next.ended
  const startedAt = Number(/started (\d+)/.exec(stdout)?.[1]) / 1e6
  const survivors = [...stdout.matchAll(/^alive (\w+)$/gm)].map(([, name]) => name ?? '')
  const lastAt = Math.max(...FAMILY.map((name) => Number(ticks(folder, name).at(-1)) / 1e6))
  for (const name of FAMILY) if (loss === 'all') end(pidOf(folder, name))
  // SQLite repeats what failed for many seconds.
  if (loss === 'error') rmSync(fault)
  if (loss === 'hang') first.process.kill('SIGKILL')
  first.process.kill('SIGCONT')
  const { code, stderr } = await first.ended
  return { gapMs: startedAt - lastAt, alive: survivors, afterMs: startedAt - faultAt, code, stderr }
}

/** @throws when the family and the next holder's command overlapped. */
export function judge(loss: Loss, { gapMs, alive, afterMs }: Round): void {
  const when = `the next holder's command started ${afterMs.toFixed(1)} ms after the fault`
  if (alive.length > 0)
    throw new Error(
      `${loss}: ${alive.join(', ')} still ran when ${when}; their last sign of life came ${(-gapMs).toFixed(1)} ms later`,
    )
  if (!(gapMs > 0)) throw new Error(`${loss}: the family ran on for ${-gapMs} ms when ${when}`)
}

async function inflict(bench: Bench, loss: Loss, { process: first }: Running, key: string, fault: string) {
  const pid = first.pid ?? 0
  const { watchdog, sentinel } = companions(pid)
  switch (loss) {
    case 'hang':
    case 'error':
      return writeFileSync(fault, loss)
    case 'revoke':
      return void (await bench.run(['revoke', key]))
    case 'stop':
      return void first.kill('SIGSTOP')
    case 'kill':
      return void first.kill('SIGKILL')
    case 'both':
      return end(pid, watchdog)
    case 'all':
      return end(sentinel, pid, watchdog)
    case 'watchdog':
      end(watchdog)
      await pause(500)
      return end(pid)
    case 'sentinel':
      end(sentinel)
      await pause(500)
      return end(pid, companions(pid).watchdog)
  }
}

/** The processes that holdfast has beside its command. */
export function companions(holdfast: number): { watchdog: number; sentinel: number } {
  const found = { watchdog: 0, sentinel: 0 }
  for (const entry of readdirSync('/proc')) {
    const [parent, line] = [parentOf(entry), textOf(`/proc/${entry}/cmdline`)]
    if (parent !== holdfast || !line.includes('watchdog-main')) continue
    found[line.startsWith('/bin/sh') ? 'sentinel' : 'watchdog'] = Number(entry)
  }
  return found
}

const parentOf = (pid: string): number => Number(/^PPid:\s*(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1])

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function end(...pids: readonly number[]): void {
  for (const pid of pids) if (pid > 0 && alive(pid)) process.kill(pid, 'SIGKILL')
}

const ticks = (folder: string, name: string): string[] => textOf(join(folder, name)).trim().split('\n').filter(Boolean)
const pidOf = (folder: string, name: string): number => Number(textOf(join(folder, `${name}.pid`)))
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
