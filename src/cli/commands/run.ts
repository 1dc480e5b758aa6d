import { systemEnvironment } from '../../environment.js'
import { AcquireTimeoutError, LeaseLostError } from '../../errors.js'
import type { Observe } from '../../events.js'
import type { Lease } from '../../lease.js'
import { createLeases, type Leases } from '../../leases.js'
import { type AcquireOptions, DEFAULTS, type LeasesOptions } from '../../options.js'
import { has, optionOf, type Parsed } from '../args.js'
import { asUsage } from '../as-usage.js'
import { CliError, EXIT, exitCodeOf, exitOfSignal, nameOfSignal, usageError } from '../exit.js'
import type { MetricsFile } from '../metrics/metrics-file.js'
import { Cgroup } from '../process/cgroup.js'
import { refuseMangledArguments } from '../process/child.js'
import { Interrupted, Signals } from '../process/signals.js'
import { hold } from '../run/hold.js'
import type { Journal } from '../run/journal.js'
import { type Plan, planOf } from '../run/plan.js'
import { askedText, Progress } from '../run/progress.js'
import { type Lengths, planFor, refuseWhatStoreCannot } from '../run/relations.js'
import { Report } from '../run/report.js'
import { longerTtl, openStore, suggest, type Target, targetOf } from '../target/connect.js'
import { formatDuration, parseDuration, parseDurationOrForever } from '../text/duration.js'
import { holdingLine } from '../text/holding-line.js'
import { inOurWords } from '../text/our-words.js'
import { leaveStderrAlone, say } from '../text/output.js'
import { keyOf } from './common.js'

interface Request {
  readonly key: string
  readonly target: Target
  readonly lengths: Lengths
  readonly plan: Plan
  readonly label: string | undefined
  readonly waitMs: number
  readonly conflictExitCode: number
  readonly inheritStore: boolean
  readonly quiet: boolean
  readonly trustRestart: boolean
}

const TRUSTS_RESTART =
  '--trust-restart: if the server lost its leases in a restart, who held one before may still be at work: two may hold one key; for development only'

/** `holdfast run`: waits for the key, holds it while the command runs, and gives the command's exit code. */
export async function run(parsed: Parsed): Promise<number> {
  const report = new Report(await journalOf(parsed), systemEnvironment().clock, parsed.positionals[0] ?? null)
  let exitCode: number = EXIT.software
  let metrics: MetricsFile | undefined
  try {
    metrics = await metricsOf(parsed)
    exitCode = await runOnce(parsed, report, metrics)
    return exitCode
  } catch (error) {
    const known = exitCodeOf(error)
    exitCode = known ?? EXIT.software
    report.failed(error, known)
    throw error
  } finally {
    metrics?.write(report.outcome, exitCode)
    await report.conclude(exitCode)
  }
}

/** Opened before anything else is looked at, so that it tells of that too. */
async function journalOf(parsed: Parsed): Promise<Journal | null> {
  const path = optionOf(parsed, 'json-log')
  return path === undefined ? null : (await import('../run/journal.js')).openJournal(path)
}

async function metricsOf(parsed: Parsed): Promise<MetricsFile | undefined> {
  const path = optionOf(parsed, 'metrics-file')
  return path === undefined ? undefined : (await import('../metrics/metrics-file.js')).metricsFile(path, keyOf(parsed))
}

async function runOnce(parsed: Parsed, report: Report, metrics: MetricsFile | undefined): Promise<number> {
  refuseMangledArguments(process.argv)
  const request = requestOf(parsed)
  const { key, target, lengths, waitMs, quiet } = request
  report.asks({ namespace: target.namespace ?? DEFAULTS.namespace, key, store: target.place }, waitMs > 0)
  const signals = new Signals()
  leaveStderrAlone()
  const newGroup = () => (has(parsed, 'cgroup') ? new Cgroup(systemEnvironment().random.id()) : null)
  // Refused before the wait; made for good after it.
  newGroup()?.remove()
  const store = await openStore(target, { trustRestart: request.trustRestart })
  refuseWhatStoreCannot(lengths, store, longerTtl(target))
  if (request.trustRestart && !quiet) say(TRUSTS_RESTART)
  const progress = new Progress(target, key, () => leases.inspect(key), { quiet, waitMs })
  const observe: Observe = (event) => {
    report.seen(event)
    metrics?.observe(event)
    progress.seen(event)
  }
  const leases: Leases = asUsage(() => createLeases(store, { ...leasesOptions(request), observe }))
  // What could not be released was said already, and lingers up to its ttl.
  const close = () => leases.close().catch(() => {})
  let cgroup: Cgroup | null = null
  try {
    const lease = await acquire(leases, request, signals, { progress, report })
    if (typeof lease === 'number') return lease
    cgroup = newGroup()
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
      plan: await planUnder(lease, request),
      signals,
      progress,
      report,
      environment: systemEnvironment(),
      close,
    })
  } finally {
    await close()
    cgroup?.remove()
  }
}

/** A lease that is too short for what was asked for is given back at once. */
async function planUnder(lease: Lease, { lengths, plan }: Request): Promise<Plan> {
  try {
    return planFor(lease.ttlMs, lengths, plan)
  } catch (error) {
    await lease.release()
    throw error
  }
}

/** The lease, or the exit code where there is nothing more to say. */
async function acquire(
  leases: Leases,
  request: Request,
  signals: Signals,
  { progress, report }: { readonly progress: Progress; readonly report: Report },
): Promise<Lease | number> {
  const interrupted = ({ number }: Interrupted): number => {
    const signal = nameOfSignal(number)
    report.interrupted(signal)
    progress.interrupted(signal)
    return exitOfSignal(number)
  }
  try {
    const lease = await leases.acquire(request.key, acquireOptions(request, signals.interrupted))
    await progress.over()
    // A signal that came with the grant: as if it had come before it.
    if (!signals.interrupted.aborted) return lease
    await lease.release()
    return interrupted(signals.interrupted.reason as Interrupted)
  } catch (error) {
    await progress.over()
    if (error instanceof Interrupted) return interrupted(error)
    if (error instanceof LeaseLostError || exitCodeOf(error) !== EXIT.held) throw error
    const { quiet, conflictExitCode } = request
    // Declared to be no failure, where only failures are asked for: cron would mail it at every turn.
    if (quiet && conflictExitCode === 0 && error instanceof AcquireTimeoutError) {
      report.failed(error, conflictExitCode)
      return EXIT.ok
    }
    throw new CliError(await conflict(error, leases, request), { exitCode: conflictExitCode, cause: error })
  }
}

async function conflict(error: unknown, leases: Leases, { key, target, waitMs }: Request): Promise<string> {
  const wait = waitMs === 0 ? 'wait for it with --wait 5m' : 'wait longer with --wait'
  if (!(error instanceof AcquireTimeoutError)) return `${inOurWords((error as Error).message)}; try again, or ${wait}`
  const holding = await leases.inspect(key).catch(() => null)
  const by = error.holder === undefined ? '' : ` by ${error.holder}`
  // The holder may have let go since, or be another one by now: what was answered is what counts.
  const who = holding && holding.label === error.holder ? holdingLine(holding) : `${JSON.stringify(key)} was held${by}`
  const waited = waitMs > 0 ? `; waited ${formatDuration(error.waitedMs)}` : ''
  const ask = suggest(target, 'revoke', key)
  return `${who}${waited} (${askedText(target)}); ${wait}, or ask for it back: ${ask}`
}

function requestOf(parsed: Parsed): Request {
  const key = keyOf(parsed)
  const length = (name: string) => {
    const text = optionOf(parsed, name)
    return text === undefined ? undefined : parseDuration(`--${name}`, text)
  }
  const lengths = {
    ttlMs: length('ttl') ?? DEFAULTS.ttlMs,
    graceMs: length('grace'),
    lockDelayMs: length('lock-delay') ?? DEFAULTS.lockDelayMs,
    minHoldMs: length('min-hold') ?? 0,
  }
  return {
    key,
    target: targetOf(parsed),
    lengths,
    plan: planOf(lengths.ttlMs, lengths.graceMs),
    label: optionOf(parsed, 'label'),
    waitMs: waitOf(parsed),
    conflictExitCode: conflictExitCodeOf(parsed),
    inheritStore: !has(parsed, 'no-inherit-store'),
    quiet: has(parsed, 'quiet'),
    trustRestart: has(parsed, 'trust-restart'),
  }
}

function leasesOptions({ target, lengths, label }: Request): LeasesOptions {
  const { ttlMs, lockDelayMs } = lengths
  const { namespace } = target
  return { ttlMs, lockDelayMs, ...(namespace !== undefined && { namespace }), ...(label !== undefined && { label }) }
}

// Until the store knows who else keeps it alive: the command and the watchdog.
const acquireOptions = ({ waitMs, lengths }: Request, signal: AbortSignal): AcquireOptions => ({
  waitMs,
  minHoldMs: lengths.minHoldMs,
  life: 'outlives-process',
  signal,
})

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
