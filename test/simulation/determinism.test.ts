import assert from 'node:assert/strict'
import test from 'node:test'
import {
  delayReply,
  delayRequest,
  duplicate,
  type Fault,
  faultyStore,
  loseReply,
  loseRequest,
  pass,
} from '../../src/faults/index.js'
import { createLeases, LeaseError, type LeaseEvent, sleep } from '../../src/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import { memoryServer } from '../../src/stores/memory.js'

/** Three clients with faulty connections and drifting clocks on one key; every event with its time, as text. */
async function trace(seed: number): Promise<string[]> {
  const world = virtualEnvironment(seed)
  const server = memoryServer({ environment: world.machine('server') })
  const lines: string[] = []
  const clients = ['a', 'b', 'c'].map(async (name) => {
    const drift = world.random.fork(`${name} drift`).next()
    const env = world.machine(name, { rate: 0.998 + drift * 0.004 })
    const faults = env.random.fork('faults')
    const plan = (): Fault =>
      faults.chance(0.7)
        ? pass
        : faults.pick([
            loseReply,
            loseRequest,
            delayReply(faults.below(300)),
            delayRequest(faults.below(300)),
            duplicate(50),
          ])
    const store = faultyStore(server.connect(), { clock: env.clock, plan })
    const observe = ({ type, ...facts }: LeaseEvent) => {
      const error = 'error' in facts ? { error: String(facts.error) } : {}
      const text = JSON.stringify({ ...facts, ...error }, (_, part) => (typeof part === 'bigint' ? String(part) : part))
      lines.push(`${world.scheduler.now} ${name} ${type} ${text}`)
    }
    const leases = createLeases(store, { ttlMs: 1000, environment: env, observe, label: name })
    for (let round = 0; round < 10; round++) {
      await leases
        .run('k', { waitMs: 3000 }, () => sleep(env.clock, env.random.below(1500)))
        .catch((error) => {
          if (!(error instanceof LeaseError)) throw error
        })
    }
    await leases.close().catch(() => {})
  })
  await world.runUntil(Promise.all(clients))
  return lines
}

test('the core, unchanged, in simulated time: the same seed gives the same trace, another seed another', async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const first = await trace(seed)
    assert.ok(first.length > 50, `seed ${seed} did too little: ${first.length} events`)
    assert.deepEqual(await trace(seed), first, `seed ${seed}`)
  }
  assert.notDeepEqual(await trace(1), await trace(2))
})
