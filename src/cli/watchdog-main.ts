/**
 * The watchdog: a process of its own that ends the command when holdfast does not, because it was killed or stopped.
 * Told by lines on stdin (`watchdog-orders.ts`); the end of stdin is the end of holdfast. Started with such a line as its
 * argument, it is the sentinel's successor: holdfast is gone already.
 */
import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { sleep, systemEnvironment } from '../environment.js'
import { removeGroup } from './process/cgroup.js'
import { sayNotEnded } from './process/ending.js'
import type { ProcessInfo } from './process/processes.js'
import { Tree } from './process/tree.js'
import { Guard, type GuardEvents } from './run/guard.js'
import type { Plan } from './run/plan.js'
import { formatDuration } from './text/duration.js'
import { flushed, leaveStderrAlone, say } from './text/output.js'
import { ACTING, decodeOrders, SENTINEL_DONE, SENTINEL_PIPE, type WatchdogOrders } from './watchdog-orders.js'

/** How long its own end waits for a reader of its messages. */
const FLUSH_MS = 500
/** A process that holdfast was about to start when it died has no cookie for a moment: look once more after this. */
const LAST_LOOK_MS = 50
const STDOUT = 1
/** A deadline that has moved by less was told again, no more. */
const RENEWED_MS = 10
const { clock, host } = systemEnvironment()

/** What was told of the lease. */
class ToldLease {
  readonly #abort = new AbortController()
  deadline = Number.POSITIVE_INFINITY

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get remainingMs(): number {
    return Math.max(this.deadline - clock.now(), 0)
  }

  abandon(): void {
    this.#abort.abort()
  }
}

leaveStderrAlone()
const lease = new ToldLease()
let orders: WatchdogOrders | null = null
let guard: Guard | null = null
let tree: Tree | null = null
let isActing = false
let isAlone = false
let isLastLook = false

function told(line: string): void {
  answer('')
  if (isActing) return
  const before = orders
  orders = decodeOrders(line)
  const { deadline, killAt, plan } = orders
  const end = killAt === null ? deadline : killAt + plan.marginMs
  lease.deadline = clock.now() + end - host.now()
  if (guard && before?.killAt === killAt && before.root.pid === orders.root.pid) {
    guard.look()
    // Who was seen once is known, even when nothing connects it with the command any more.
    if (!isActing && deadline > before.deadline + RENEWED_MS) tree?.members()
    return
  }
  guard?.stop()
  if (before?.root.pid !== orders.root.pid) tree = new Tree(orders.root)
  watch(orders, events(orders))
}

function watch(to: WatchdogOrders, events: GuardEvents): void {
  tree ??= new Tree(to.root)
  guard = new Guard(lease, clock, laterPlan(to), tree, events, { waitsForCommand: false })
  void guard.allDead.then(over)
}

/**
 * holdfast comes first, and only when it lets its moment pass is it our turn: a moment later for TERM, which must not
 * come twice, and almost at once for KILL. What holdfast has told to end already is not told again, and is left to it
 * for half the margin.
 */
function laterPlan({ plan, killAt }: WatchdogOrders): Plan {
  if (killAt !== null) return { ...plan, marginMs: plan.marginMs / 2, graceMs: 0 }
  return { ...plan, marginMs: (plan.marginMs * 7) / 8, graceMs: Math.max(plan.graceMs - plan.marginMs / 8, 0) }
}

const events = ({ key, holdfast, killAt }: WatchdogOrders): GuardEvents => ({
  deadlineMoved: () => {},
  terminating: (killInMs) => {
    act()
    say(
      `holdfast (pid ${holdfast}) does not respond, and the lease on ${JSON.stringify(key)} ends soon: TERM was sent to the command, KILL follows in ${formatDuration(killInMs)}`,
    )
  },
  killing: () => {
    const isNews = isAlone || (!isActing && killAt === null)
    act()
    const why = isAlone ? 'is gone' : 'does not respond'
    if (isNews)
      say(
        `holdfast (pid ${holdfast}) ${why}: KILL was sent to its command, which must not go on without the lease on ${JSON.stringify(key)}`,
      )
  },
})

const SILENT: GuardEvents = { deadlineMoved: () => {}, terminating: () => {}, killing: () => {} }

/** Told before anything is done, so that holdfast, when it sees the command end, knows who has ended it. */
function act(): void {
  isActing = true
  answer(ACTING)
}

async function over(seen: readonly ProcessInfo[]): Promise<void> {
  if (isAlone && orders && !isLastLook) {
    isLastLook = true
    await sleep(clock, LAST_LOOK_MS, { keepAlive: true })
    return watch(orders, SILENT)
  }
  sayNotEnded(seen)
  if (isAlone && orders && orders.root.cgroup !== null) removeGroup(orders.root.cgroup)
  tryWrite(SENTINEL_PIPE, SENTINEL_DONE)
  await flushed(FLUSH_MS)
  process.exit(0)
}

function abandoned(): void {
  isAlone = true
  lease.abandon()
  if (!guard) process.exit(0)
}

const answer = (word: string): void => tryWrite(STDOUT, `${word}\n`)

function tryWrite(fd: number, text: string): void {
  try {
    writeSync(fd, text)
  } catch {
    // Nobody is there to read it.
  }
}

// What a service manager or a hang-up sends to everybody is for the command.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const)
  process.on(signal, () => {})

const [, , line] = process.argv
if (line === undefined) {
  let text = ''
  const stdin = new Socket({ fd: 0 })
  stdin.setEncoding('utf8').on('data', (piece: string) => {
    const lines = (text + piece).split('\n')
    text = lines.pop() ?? ''
    for (const each of lines) told(each)
  })
  stdin.on('error', abandoned).on('close', abandoned).on('end', abandoned)
} else {
  told(line)
  abandoned()
}
