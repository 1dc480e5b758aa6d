/**
 * An application with metrics, one of several that contend: counts for itself what happens to its leases, by what their
 * handles say, and at the end tells that beside what its registry says.
 */
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { createLeases, type Lease, type LeaseEvent, LeaseLostError } from '../../src/index.js'
import { prometheus } from '../../src/metrics/index.js'
import { sqliteStore } from '../../src/stores/sqlite.js'

export interface Told {
  /** While leases are held, and at the end. */
  readonly during: string
  readonly heldDuring: number
  readonly text: string
  readonly acquired: number
  readonly ended: number
  readonly lost: Record<string, number>
  readonly attempts: Record<string, number>
  readonly renewed: number
  readonly heldForSeconds: number
}

const LOOPS = 12
const ROUNDS = 6
// Leases alone keep no process running.
const alive = setInterval(() => {}, 1000)
const [path = '', name = ''] = process.argv.slice(2)
const leases = createLeases(sqliteStore({ path }), { ttlMs: 3000, callTimeoutMs: 900, label: name })
const register = new Registry()
prometheus(leases, register)

let [acquired, ended, renewed, heldForMs] = [0, 0, 0, 0]
const lost: Record<string, number> = {}
const attempts: Record<string, number> = {}
const bump = (counts: Record<string, number>, what: string) => {
  counts[what] = (counts[what] ?? 0) + 1
}
// What no handle tells.
subscribe('holdfast:attempt', (event) => bump(attempts, (event as LeaseEvent & { type: 'attempt' }).outcome))
subscribe('holdfast:renewed', () => {
  renewed++
})

/** One lease from its grant to its end. */
async function use(lease: Lease, work: (lease: Lease) => Promise<unknown>): Promise<void> {
  acquired++
  const began = performance.now()
  let isLost = false
  const end = () => {
    ended++
    heldForMs += performance.now() - began
  }
  // Read once: each read looks at the clock, and may be what ends the lease.
  const { signal } = lease
  const onLost = () => {
    const { reason } = signal
    if (!(reason instanceof LeaseLostError)) throw reason
    isLost = true
    bump(lost, reason.reason)
    end()
  }
  if (signal.aborted) onLost()
  else signal.addEventListener('abort', onLost)
  await work(lease)
  const outcome = await lease.release()
  if (isLost) return
  end()
  if (outcome === 'lost') bump(lost, 'missing')
}

const untilLost = async ({ signal }: Lease) => signal.aborted || once(signal, 'abort')
const hold = () => delay(1 + Math.random() * 10)

async function contend(loop: number): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const key = `shared-${(loop + round) % 3}`
    const lease = round % 3 === 0 ? await leases.tryAcquire(key) : await leases.acquire(key)
    if (lease) await use(lease, hold)
  }
}

async function lose(): Promise<void> {
  const own = (what: string) => `${name}-${what}`
  await Promise.all([
    leases.acquire(own('max'), { maxHoldMs: 40 }).then((lease) => use(lease, untilLost)),
    leases.acquire(own('expired'), { ttlMs: 1500, heartbeat: false }).then((lease) => use(lease, untilLost)),
    leases.acquire(own('revoked')).then((lease) =>
      use(lease, async () => {
        await leases.revoke(lease.key)
        await untilLost(lease)
      }),
    ),
    leases.acquire(own('freed')).then((lease) =>
      use(lease, async () => {
        await leases.revoke(lease.key, { force: true })
        await untilLost(lease)
      }),
    ),
    // Nobody tells it: its release finds nothing.
    leases
      .acquire(own('gone'), { heartbeat: false })
      .then((lease) => use(lease, () => leases.revoke(lease.key, { force: true }))),
  ])
}

const [first, second] = [await leases.acquire(`${name}-a`), await leases.acquire(`${name}-b`)]
const letGo = new AbortController()
const kept = [first, second].map((lease) => use(lease, () => once(letGo.signal, 'abort')))
await Promise.all([...Array.from({ length: LOOPS }, (_, loop) => contend(loop)), lose()])
const during = await register.metrics()
const heldDuring = [first, second].filter((lease) => lease.held).length
const closing = leases.close()
letGo.abort()
await Promise.all([...kept, closing])

clearInterval(alive)
const told: Told = {
  during,
  heldDuring,
  text: await register.metrics(),
  acquired,
  ended,
  lost,
  attempts,
  renewed,
  heldForSeconds: heldForMs / 1000,
}
process.stdout.write(JSON.stringify(told))
