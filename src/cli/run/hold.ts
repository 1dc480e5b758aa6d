import { type Environment, sleep, systemEnvironment, turn } from '../../environment.js'
import { LeaseLostError } from '../../errors.js'
import type { Lease, ReleaseResult } from '../../lease.js'
import { EXIT } from '../exit.js'
import type { Cgroup } from '../process/cgroup.js'
import { type Ended, start } from '../process/child.js'
import { sayNotEnded } from '../process/ending.js'
import { nameOf, type ProcessInfo } from '../process/processes.js'
import type { Signals } from '../process/signals.js'
import { QUIET_LOOKS, type Tree } from '../process/tree.js'
import { formatDuration } from '../text/duration.js'
import { inOurWords } from '../text/our-words.js'
import { say } from '../text/output.js'
import { WatchdogLink } from '../watchdog-link.js'
import { Guard } from './guard.js'
import type { Plan } from './plan.js'
import type { Progress } from './progress.js'
import type { Report } from './report.js'

export interface Hold {
  readonly lease: Lease
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly plan: Plan
  /** Made for the command, where that was asked for. */
  readonly cgroup: Cgroup | null
  readonly signals: Signals
  readonly progress: Progress
  readonly report: Report
  readonly environment: Environment
  /** Closes the store: while the watchdog is waited for, since both take their time. */
  close(): Promise<void>
}

/** Commands that still run: an unexpected end of holdfast must not leave one behind without its lease. */
const running = new Map<Tree, WatchdogLink>()
let isCrashing = false
/** How long an end of that kind goes on looking for what the command started. */
const CRASH_MS = 1_000
const CRASH_LOOK_MS = 5

/** Kills what runs and looks after it, a moment long. From here on no run comes to an end of its own. */
export async function killEverything(): Promise<void> {
  isCrashing = true
  const trees = [...running.keys()]
  for (const tree of trees) tree.kill()
  const { clock } = systemEnvironment()
  const until = clock.now() + CRASH_MS
  let left: readonly ProcessInfo[] = []
  let isGone = false
  for (let quiet = 0; trees.length > 0 && quiet < QUIET_LOOKS && clock.now() < until; ) {
    await sleep(clock, CRASH_LOOK_MS, { keepAlive: true })
    const looks = trees.map((tree) => tree.look())
    left = looks.flatMap(({ seen }) => seen)
    isGone = looks.every((look) => look.isGone)
    quiet = isGone ? quiet + 1 : 0
    if (!isGone) for (const tree of trees) tree.kill()
  }
  sayNotEnded(left)
  // Whoever is left is the watchdog's.
  if (isGone) await Promise.all([...running.values()].map((watchdog) => watchdog.stop()))
}

/** Runs the command under the lease and gives the exit code. The lease ends when nothing that it protected is left. */
export async function hold(hold: Hold): Promise<number> {
  const { lease, plan, cgroup, environment } = hold
  const cookie = environment.random.id()
  const watchdog = watchdogOf(lease, plan, cookie, cgroup?.folder ?? null, environment)
  if (!watchdog) return notStarted(hold, null, NO_WATCHDOG)
  // Whoever was paused since the grant has no time left to begin.
  if (!lease.held) {
    await watchdog.stop()
    return lost(hold, null, [], await lease.release())
  }
  const started = start(hold.command, { ...process.env, ...hold.env }, cookie, cgroup)
  const { tree } = started
  if (!tree) return notStarted(hold, watchdog, await started.ended)

  running.set(tree, watchdog)
  try {
    return await guarded(hold, started.ended, tree, watchdog)
  } catch (error) {
    // A fault of ours: the command goes before the lease does.
    await killEverything()
    throw error
  }
}

async function guarded(hold: Hold, commandEnded: Promise<Ended>, tree: Tree, watchdog: WatchdogLink): Promise<number> {
  const { lease, plan, signals, progress, report, environment } = hold
  watchdog.begin(tree)
  report.started(tree.root.pid)
  const name = JSON.stringify(lease.key)
  const guard = new Guard(
    lease,
    environment.clock,
    plan,
    tree,
    {
      deadlineMoved: () => watchdog.renewed(),
      terminating: (killInMs) => {
        watchdog.ending(killInMs)
        report.terminating(killInMs)
        const why = lease.signal.aborted
          ? ''
          : `the lease on ${name} could not be renewed in time${because(progress)}; `
        say(`${why}TERM was sent to the command, KILL follows in ${formatDuration(killInMs)}`)
      },
      killing: () => {
        watchdog.ending(0)
        report.killing()
        say('KILL was sent to the command and to what was found of all that it started')
      },
    },
    { waitsForCommand: true },
  )
  watchdog.onActing = () => {
    // It may help to end what we are ending already: that is no news.
    if (guard.isWatching) report.overtaken()
    guard.finish()
  }
  signals.forwardTo(tree, () => guard.look())
  progress.onRenewed = () => guard.look()

  const over = commandEnded.then(async (ended) => {
    // If the watchdog has ended it, its word is there already, and read in this turn.
    await turn()
    report.ended(ended)
    return { ended, wasProtected: guard.commandEnded() }
  })
  // A command that cannot be ended is not waited for: it is named, and the loss reported.
  const end = await Promise.race([over, guard.allDead.then(() => null)])
  if (isCrashing) return new Promise(() => {})
  const left = end?.wasProtected ? tree.leftBehind() : await guard.allDead
  signals.stop()
  running.delete(tree)
  const watchdogStopped = watchdog.stop()
  const outcome = await lease.release()
  await Promise.all([watchdogStopped, hold.close()])
  if (!end?.wasProtected) return lost(hold, end?.ended ?? null, left, outcome)

  if (left.length > 0)
    say(
      `the command ended but left behind, now without the lease: ${left.map(nameOf).join(', ')}; let it wait for them`,
    )
  if (outcome === 'lost') return lost(hold, end.ended, [], outcome)
  if (outcome === 'unknown')
    say(`no answer to the release of ${name}: it may stay taken for up to ${formatDuration(lease.ttlMs)}`)
  return end.ended.exitCode
}

const NO_WATCHDOG: Ended = {
  kind: 'not-started',
  exitCode: EXIT.notExecutable,
  why: 'the watchdog could not be started (is the environment too large, or a limit of processes reached?), and so the command was not',
}

function watchdogOf(...args: ConstructorParameters<typeof WatchdogLink>): WatchdogLink | null {
  try {
    return new WatchdogLink(...args)
  } catch {
    return null
  }
}

async function notStarted({ lease, report }: Hold, watchdog: WatchdogLink | null, ended: Ended): Promise<number> {
  report.ended(ended)
  await Promise.all([watchdog?.stop(), lease.release()])
  if (ended.kind === 'not-started') say(ended.why)
  return ended.exitCode
}

function lost(
  { lease, progress, report }: Hold,
  ended: Ended | null,
  left: readonly ProcessInfo[],
  outcome: ReleaseResult,
): number {
  const reason: unknown = lease.signal.reason
  const name = JSON.stringify(lease.key)
  const what =
    reason instanceof LeaseLostError
      ? inOurWords(reason.message)
      : outcome === 'lost'
        ? `the lease on ${name} was gone before the command ended`
        : `the lease on ${name} could not be renewed in time${because(progress)}`
  const how = ended?.kind === 'ended' ? `; the command ${ended.how}` : ''
  report.lost(reason instanceof LeaseLostError ? reason.reason : outcome === 'lost' ? 'missing' : 'expired', what)
  say(`${what}${how}; exit ${EXIT.lost}: ${advice(reason)}`)
  sayNotEnded(left)
  return EXIT.lost
}

function advice(reason: unknown): string {
  const why = reason instanceof LeaseLostError ? reason.reason : 'expired'
  if (why === 'revoked') return 'somebody asked for it back; run it again when they are done'
  if (why === 'expired')
    return 'look at the store and at this host (paused, overloaded?), then run it again, perhaps with a longer --ttl'
  if (why === 'missing')
    return 'an operator may have freed it by force, or somebody deleted or replaced what the store keeps: find out which, then run it again'
  if (why === 'taken') return 'an operator may have freed it by force; see who holds it now, then run it again'
  return 'its work may be incomplete; run it again'
}

const because = (progress: Progress): string => (progress.trouble === null ? '' : ` (${progress.trouble})`)
