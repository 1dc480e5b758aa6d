import assert from 'node:assert/strict'
import test from 'node:test'
import { handOver } from '../support/hand-over.js'

const SCHEDULES = 10_000
const only = process.env.HOLDFAST_SEED

test(`B222: cancel and hand-over in ${SCHEDULES} random interleavings: one outcome each, nobody left behind`, async () => {
  const seeds = only === undefined ? Array.from({ length: SCHEDULES }, (_, n) => n + 1) : [Number(only)]
  for (const seed of seeds) {
    const problem = await handOver(seed)
    const again = `HOLDFAST_SEED=${seed} node --test dist/test/simulation/hand-over.test.js`
    assert.equal(problem, null, `${problem}; to see it again: ${again}`)
  }
})

test('B222: the check finds a store that grants a held key, a release that never arrives, a cancel that is ignored', async () => {
  const found = async (wrong: Parameters<typeof handOver>[1], expected: RegExp) => {
    for (let seed = 1; seed <= 200; seed++) {
      const problem = await handOver(seed, wrong)
      if (problem && expected.test(problem)) return
    }
    assert.fail(`200 schedules have not shown ${expected}`)
  }
  let fence = 10n ** 18n
  await found(
    {
      store: (store) => ({
        ...store,
        traits: store.traits,
        acquire: async ({ ttlMs }) => ({ kind: 'granted', fence: ++fence, ttlMs }),
      }),
    },
    /two hold it/,
  )
  await found(
    { store: (store) => ({ ...store, traits: store.traits, release: async () => ({ kind: 'released' }) }) },
    /the key is left taken|not settled|rejected with/,
  )
  await found(
    {
      acquire: (leases, signal) =>
        Promise.race([
          leases.acquire('k'),
          new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
        ]),
    },
    /the key is left taken|not settled|held/,
  )
})
