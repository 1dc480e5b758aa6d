import { systemEnvironment } from '../../environment.js'
import { AcquireTimeoutError, LeaseLostError } from '../../errors.js'
import type { Observe } from '../../events.js'
import type { Lease } from '../../lease.js'
import { createLeases, type Leases } from '../../leases.js'
import { type AcquireOptions, DEFAULTS, type LeasesOptions } from '../../options.js'
import { has, optionOf, type Parsed } from '../args.js'
import { Cgroup } from '../cgroup.js'
import { refuseMangledArguments } from '../child.js'
import { openStore, suggest, type Target, targetOf } from '../connect.js'
import { formatDuration, parseDuration, parseDurationOrForever } from '../duration.js'
import { CliError, EXIT, exitCodeOf, exitOfSignal, usageError } from '../exit.js'
import { hold } from '../hold.js'
import { type Plan, planOf } from '../plan.js'
import { Progress } from '../progress.js'
import { Interrupted, Signals } from '../signals.js'
import { holdingLine } from '../table.js'
import { asUsage, keyOf } from './common.js'

interface Request {
  readonly key: string
  readonly target: Target
  readonly plan: Plan
  readonly leases: LeasesOptions
  readonly acquire: AcquireOptions
  readonly conflictExitCode: number
  readonly inheritStore: boolean
  readonly quiet: boolean
}

/** `holdfast run`: waits for the key, holds it while the command runs, and gives the command's exit code. */
export async function run(parsed: Parsed): Promise<number> {
  refuseMangledArguments(process.argv)
  const file = optionOf(parsed, 'metrics-file')
  if (file === undefined) return runOnce(parsed)
  const { withMetricsFile } = await import('../metrics-file.js')
  return withMetricsFile(file, parsed.positionals[0] ?? '', (observe) => runOnce(parsed, observe))
}

async function runOnce(parsed: Parsed, observe?: Observe): Promise<number> {
  const request = requestOf(parsed)
  const { key, target, quiet } = request
  const signals = new Signals()
  const cgroup = has(parsed, 'cgroup') ? new Cgroup(systemEnvironment().random.id()) : null
  const store = await openStore(target)
  const progress = new Progress(target, key, () => leases.inspect(key), { quiet, waits: request.acquire.waitMs !== 0 })
  const leases: Leases = asUsage(() =>
    createLeases(store, { ...request.leases, observe: (event) => progress.seen(event) }),
  )
  if (observe) leases.observe(observe)
  // What could not be released was said already, and lingers up to its ttl.
  const close = () => leases.close().catch(() => {})
  try {
    const lease = await acquire(leases, request, signals, progress)
    if (typeof lease === 'number') return lease
    const env = {
      HOLDFAST_KEY: key,
      HOLDFAST_FENCE: String(lease.fence),
      HOLDFAST_STORE: request.inheritStore ? target.url : 'refuse:',
    }
    return await hold({
      lease,
      cgroup,
      command: parsed.command,
      env,
      plan: request.plan,
      signals,
      progress,
      environment: systemEnvironment(),
      close,
    })
  } finally {
    await close()
    cgroup?.remove()
  }
}

async function acquire(
  leases: Leases,
  request: Request,
  signals: Signals,
  progress: Progress,
): Promise<Lease | number> {
  const { key, target } = request
  try {
    const lease = await leases.acquire(key, { ...request.acquire, signal: signals.interrupted })
    // A signal that came with the grant: as if it had come before it.
    if (!signals.interrupted.aborted) return lease
    await lease.release()
    return exitOfSignal((signals.interrupted.reason as Interrupted).number)
  } catch (error) {
    if (error instanceof Interrupted) return exitOfSignal(error.number)
    if (error instanceof LeaseLostError || exitCodeOf(error) !== EXIT.held) throw error
    // Declared to be no failure, where only failures are asked for: cron would mail it at every turn.
    if (request.quiet && request.conflictExitCode === 0 && error instanceof AcquireTimeoutError) return EXIT.ok
    throw new CliError(await conflict(error, leases, key, target), { exitCode: request.conflictExitCode, cause: error })
  } finally {
    progress.over()
  }
}

async function conflict(error: unknown, leases: Leases, key: string, target: Target): Promise<string> {
  if (!(error instanceof AcquireTimeoutError))
    return `${(error as Error).message}; try again then, or wait longer with --wait`
  const holding = await leases.inspect(key).catch(() => null)
  const by = error.holder === undefined ? '' : ` by ${error.holder}`
  // The holder may have let go since, or be another one by now: what was answered is what counts.
  const who = holding && holding.label === error.holder ? holdingLine(holding) : `${JSON.stringify(key)} was held${by}`
  const waited = error.waitedMs >= 100 ? `; waited ${formatDuration(error.waitedMs)}` : ''
  const ask = suggest(target, 'revoke', key)
  return `${who}${waited} (asked ${target.place}); wait longer with --wait, or ask for it back: ${ask}`
}

function requestOf(parsed: Parsed): Request {
  const key = keyOf(parsed)
  const length = (name: string) => {
    const text = optionOf(parsed, name)
    return text === undefined ? undefined : parseDuration(`--${name}`, text)
  }
  const ttlMs = length('ttl') ?? DEFAULTS.ttlMs
  const [lockDelayMs, minHoldMs, graceMs] = [length('lock-delay'), length('min-hold'), length('grace')]
  const label = optionOf(parsed, 'label')
  const plan = planOf(ttlMs, graceMs)
  const target = targetOf(parsed)
  return {
    key,
    target,
    plan,
    leases: {
      ttlMs,
      ...(target.namespace !== undefined && { namespace: target.namespace }),
      ...(lockDelayMs !== undefined && { lockDelayMs }),
      ...(label !== undefined && { label }),
    },
    // Until the store knows who else keeps it alive: the command and the watchdog.
    acquire: { waitMs: waitOf(parsed), life: 'outlives-process', ...(minHoldMs !== undefined && { minHoldMs }) },
    conflictExitCode: conflictExitCodeOf(parsed),
    inheritStore: !has(parsed, 'no-inherit-store'),
    quiet: has(parsed, 'quiet'),
  }
}

function waitOf(parsed: Parsed): number {
  const wait = optionOf(parsed, 'wait')
  if (!has(parsed, 'no-wait'))
    return wait === undefined ? Number.POSITIVE_INFINITY : parseDurationOrForever('--wait', wait)
  if (wait !== undefined) throw usageError('--wait and --no-wait (-n) exclude each other; give one of them')
  return 0
}

function conflictExitCodeOf(parsed: Parsed): number {
  const text = optionOf(parsed, 'conflict-exit-code')
  if (text === undefined) return EXIT.held
  if (!/^\d{1,3}$/.test(text) || Number(text) > 255) {
    throw usageError(`--conflict-exit-code (-E) must be a whole number from 0 to 255, but got ${JSON.stringify(text)}`)
  }
  return Number(text)
}
