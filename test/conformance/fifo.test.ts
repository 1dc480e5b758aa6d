/** A store with a line, to see that the suite certifies those too, and what it finds wrong with them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualEnvironment } from '../../src/simulation/index.js'
import type { Store } from '../../src/store.js'
import { type MemoryServer, memoryServer } from '../../src/stores/memory.js'
import { collect } from './collect.js'

interface Faults {
  readonly newcomersPass?: boolean
  readonly leaverStays?: boolean
  readonly placesLast?: boolean
}

/** The memory store with a line before it: a place is kept for as long as the TTL of its claim. */
async function certify(faults: Faults) {
  const environment = virtualEnvironment('line')
  const server = memoryServer({ environment })
  const lines = new Map<string, { owner: string; until: number }[]>()
  const connect = () => lined(server, lines, environment.clock.now.bind(environment.clock), faults)
  return collect(() => connect, { open: async () => connect(), wait: (ms) => environment.advance(ms), environment })
}

function lined(
  server: MemoryServer,
  lines: Map<string, { owner: string; until: number }[]>,
  now: () => number,
  faults: Faults,
): Store {
  const right = server.connect()
  const traits = { ...right.traits, order: 'fifo' as const }
  return {
    ...right,
    traits,
    probe: async (call) => ({ ...(await right.probe(call)), traits }),
    async acquire(claim, call) {
      const id = JSON.stringify(claim.key)
      const line = (lines.get(id) ?? []).filter(({ until }) => faults.placesLast || until > now())
      lines.set(id, line)
      const place = line.find(({ owner }) => owner === claim.owner)
      const isTurn = line.length === 0 || line[0] === place || server.truth(claim.key)?.owner === claim.owner
      const mayAsk = isTurn || (faults.newcomersPass && !place)
      const outcome = mayAsk ? await right.acquire(claim, call) : ({ kind: 'held', queued: false } as const)
      if (outcome.kind === 'granted' && place) line.splice(line.indexOf(place), 1)
      if (outcome.kind !== 'held' || !claim.queue) return outcome
      if (place) place.until = now() + claim.ttlMs
      else line.push({ owner: claim.owner, until: now() + claim.ttlMs })
      return { ...outcome, queued: true }
    },
    async release(ref, call) {
      const line = lines.get(JSON.stringify(ref.key)) ?? []
      const place = line.findIndex(({ owner }) => owner === ref.owner)
      if (place >= 0 && !faults.leaverStays) line.splice(place, 1)
      return right.release(ref, call)
    },
  }
}

test('a store with a line passes, and its line is looked at', async () => {
  const { failed, tests } = await certify({})
  assert.deepEqual([...failed], [])
  assert.equal(tests.filter((name) => name.startsWith('order: ')).length, 3)
})

for (const [faults, check] of [
  [{ newcomersPass: true }, 'order: those in line are served in order, and nobody passes them'],
  [{ leaverStays: true }, 'order: a release gives up the place in line'],
  [{ placesLast: true }, 'order: the place of a waiter that went away expires'],
] as const) {
  test(`control: ${Object.keys(faults)[0]} is found by the check meant for it and no other`, async () => {
    const { failed } = await certify(faults)
    assert.deepEqual([...failed.keys()], [check])
  })
}
