import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Clients, collect } from './collect.js'
import { wrongAboutLeases } from './wrong-about-leases.js'
import { wrongAboutTheRest } from './wrong-about-the-rest.js'
import * as wrong from './wrong-stores.js'

/** Each store is wrong in one way; the check named beside it is the only one that may fail on it. */
const EXPECTED: readonly [string, Clients, string][] = [
  ['no owner check', wrong.noOwnerCheck, 'renew: only for its owner, whoever knows the fence'],
  ['a renewal that re-creates', wrong.renewReCreates, 'renew: never re-creates or revives what is gone'],
  ['a fence that repeats', wrong.fenceRepeats, 'fencing: every grant of a key has a greater fence than all before it'],
  ['a TTL that is ignored', wrong.ttlIgnored, 'expiry: what nobody renews ends by itself, in time'],
  [
    'two keys that share a lease',
    wrong.keysShareALease,
    'isolation: different keys are different leases, whatever their names have in common',
  ],
  ['a dead owner answered as held', wrong.deadOwnerHeld, 'renew: an owner whose lease is over is told so'],
  ["a release that frees another's", wrong.releaseFreesAnothers, "release: never frees another's lease (B025, B224)"],
  [
    'a re-ask that mints a fence',
    wrong.reAskMintsAFence,
    'acquire: asking again with the same owner is a grant whose fence has not changed',
  ],
  [
    'a tombstone that is ignored',
    wrong.tombstoneIgnored,
    'release: a kept key matches nobody, its former owner least of all',
  ],
  [
    'keepMs ignored',
    wrong.keepMsIgnored,
    'release: keepMs keeps the key taken that long, also when the lease was revoked',
  ],
  [
    'a lock delay that is ignored',
    wrong.lockDelayIgnored,
    'expiry: the lock delay comes after the TTL, of a grant and of a renewal',
  ],
]

for (const [fault, clients, check] of EXPECTED) {
  test(`the suite sees ${fault}, by the check meant for it and no other`, async () => {
    const { failed, tests } = await collect(clients)
    assert.deepEqual([...failed.keys()], [check], [...failed].map((pair) => pair.join(' => ')).join('\n'))
    assert.ok(tests.length > 50, 'a suite that stopped half-way would be green too')
  })
}

test('control: the correct store passes every check', async () => {
  const { failed, tests, skipped } = await collect((server) => () => server.connect())
  assert.deepEqual([...failed], [])
  assert.deepEqual(skipped, [])
  assert.ok(tests.length > 50)
})

// These are wrong in more than one respect, or in one that others rest on: the check named must be among those that fail.
for (const [fault, check, clients] of [...wrongAboutLeases, ...wrongAboutTheRest]) {
  test(`the suite sees a store that ${fault}`, async () => {
    const { failed } = await collect(clients)
    assert.ok(failed.has(check), `failed: ${[...failed.keys()].join('; ') || 'nothing'}`)
  })
}
