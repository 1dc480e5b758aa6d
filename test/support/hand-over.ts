/**
 * One random schedule of waiters that are cancelled while the key is handed over, in simulated time. Moments are few, so
 * that actions meet in one tick, and each begins after a random number of microtasks.
 */
import { delayReply, type FaultPlan, faultyStore, pass } from '../../src/faults/index.js'
import { createLeases, type Lease, type Leases, type Store } from '../../src/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import { memoryServer } from '../../src/stores/memory.js'

const WAITERS = 4
const MOMENTS = 5

export interface Break {
  /** Puts something wrong between the core and the store, to see whether it is noticed. */
  readonly store?: (store: Store) => Store
  readonly acquire?: (leases: Leases, signal: AbortSignal) => Promise<Lease>
}

/** What went wrong with this seed; null when nothing did. */
export async function handOver(seed: number, wrong: Break = {}): Promise<string | null> {
  const env = virtualEnvironment(seed)
  const random = env.random.fork('schedule')
  const server = memoryServer({ environment: env })
  const slow: FaultPlan = () => (random.chance(0.6) ? delayReply(random.below(3)) : pass)
  const plan: FaultPlan = random.chance(0.5) ? slow : () => pass
  const client = () => {
    const store = faultyStore(server.connect(), { clock: env.clock, plan })
    return createLeases(wrong.store?.(store) ?? store, { ttlMs: 10_000, environment: env })
  }
  const clients: [Leases, Leases] = [client(), client()]
  const acquire = wrong.acquire ?? ((leases: Leases, signal: AbortSignal) => leases.acquire('k', { signal }))
  let holders = 0
  let lastFence = 0n
  const problems: string[] = []

  const hold = async (lease: Lease, ms: number) => {
    if (++holders > 1) problems.push('two hold it')
    if (lease.fence <= lastFence) problems.push(`fence ${lease.fence} after ${lastFence}`)
    lastFence = lease.fence
    if (!lease.held) problems.push('handed out although it is not held')
    if (ms > 0) await moment(ms)
    holders--
    await lease.release()
  }
  const moment = async (ms: number) => {
    await new Promise<void>((resolve) => env.clock.timer(ms, resolve))
    for (let hops = random.below(6); hops > 0; hops--) await null
  }
  const waiter = async (leases: Leases) => {
    const cancel = new AbortController()
    const reason = new Error('cancelled')
    const [from, until, holdMs, cancels] = [
      random.below(MOMENTS),
      random.below(MOMENTS),
      random.below(3),
      random.chance(0.6),
    ]
    if (cancels) void moment(from + until).then(() => cancel.abort(reason))
    await moment(from)
    try {
      const lease = await acquire(leases, cancel.signal)
      // Cancelled in the very tick of the grant: the caller has the lease all the same, and lets go of it.
      await hold(lease, holdMs)
      return 'served'
    } catch (error) {
      if (error !== reason) problems.push(`rejected with ${String(error)}`)
      return 'cancelled'
    }
  }
  try {
    const first = await env.runUntil(clients[0].acquire('k'))
    const holding = hold(first, random.below(MOMENTS) + 1)
    const waiting = Array.from({ length: WAITERS }, () => waiter(random.pick(clients)))
    await env.runUntil(Promise.all([holding, ...waiting]), 5000)
    await env.advance(20)
    if (server.truth({ namespace: 'default', name: 'k' })) problems.push('the key is left taken')
    await env.runUntil(Promise.all(clients.map((leases) => leases.close())), 5000)
    if (env.clock.pendingTimers > 0) problems.push(`${env.clock.pendingTimers} timers are left`)
  } catch (error) {
    problems.push(String(error))
  }
  return problems.length > 0 ? problems.join('; ') : null
}
