import assert from 'node:assert/strict'
import { StoreError } from '../errors.js'
import type { CallOptions, Store } from '../store.js'
import { type Bench, noVerdict } from './bench.js'
import type { Check } from './check.js'
import type { LossyLink } from './harness.js'

/** How long a call whose reply is lost is waited for before its signal aborts, as the core would do. */
const CALL_TIMEOUT_MS = 100

export const ambiguityChecks: readonly Check[] = [
  {
    name: 'ambiguity: an acquire without an answer can be asked again by the same owner',
    async run(bench) {
      const link = await open(bench)
      const claim = bench.claim(bench.key())
      const effect = await lost(bench, link, (call) => link.store.acquire(claim, call))
      if (effect === 'released') return bench.assertFree(claim.key, 'after the store released the claim itself')
      const hold = bench.held(claim, await link.store.acquire(claim, bench.call))
      await bench.assertTaken(claim.key, 'after the second question')
      assert.equal((await bench.renew(link.store, hold)).kind, 'renewed')
    },
  },
  {
    name: 'ambiguity: an acquire without an answer can be given back (B060, B173)',
    async run(bench) {
      const link = await open(bench)
      const claim = bench.claim(bench.key())
      await lost(bench, link, (call) => link.store.acquire(claim, call))
      await link.store.release(claim, bench.call)
      await bench.assertFree(claim.key, 'after the release of a claim of unknown fate')
    },
  },
  {
    name: 'ambiguity: a renewal without an answer is no loss (B198)',
    async run(bench) {
      const link = await open(bench)
      const hold = await bench.hold(link.store, bench.key())
      await lost(bench, link, (call) => link.store.renew(hold, call))
      const outcome = await bench.renew(link.store, hold)
      assert.equal(outcome.kind, 'renewed', 'the owner must be renewed after a renewal of unknown fate')
    },
  },
  {
    name: 'ambiguity: a release without an answer can be asked again (B172)',
    async run(bench) {
      const link = await open(bench)
      const hold = await bench.hold(link.store, bench.key())
      await lost(bench, link, (call) => link.store.release(hold, call))
      await bench.release(link.store, hold)
      await bench.assertFree(hold.key, 'after the second release')
    },
  },
]

async function open(bench: Bench): Promise<LossyLink> {
  if (bench.harness.lostReply) {
    const link = await bench.harness.lostReply()
    bench.closeLater(link.store)
    return link
  }
  return droppingLink(await bench.open())
}

/** Makes one call whose reply is lost, and heals the link; what the store says may have happened. */
async function lost(bench: Bench, link: LossyLink, ask: (call: CallOptions) => Promise<unknown>) {
  const patience = new AbortController()
  link.lose()
  const asked = noVerdict(ask({ signal: patience.signal }), 'a call whose reply is lost')
  // It may fail while we wait, and is looked at afterwards.
  asked.catch(() => {})
  await bench.wait(CALL_TIMEOUT_MS)
  patience.abort()
  const { effect } = await bench.during(asked)
  link.heal()
  assert.notEqual(effect, 'none', 'the request was carried out: its effect must not be called none')
  return effect
}

/** The link that stands in where the harness has none: the call is made, and its answer dropped. */
function droppingLink(store: Store): LossyLink {
  let loses = false
  const through = async <T>(call: Promise<T>): Promise<T> => {
    const answer = await call
    if (loses) throw new StoreError('the reply was lost', 'unknown')
    return answer
  }
  const lossy: Store = {
    name: store.name,
    traits: store.traits,
    acquire: (claim, call) => through(store.acquire(claim, call)),
    renew: (held, call) => through(store.renew(held, call)),
    release: (ref, call) => through(store.release(ref, call)),
    inspect: (key, call) => through(store.inspect(key, call)),
    probe: (call) => through(store.probe(call)),
    close: () => store.close(),
  }
  const setLoses = (value: boolean) => () => {
    loses = value
  }
  return { store: lossy, lose: setLoses(true), heal: setLoses(false) }
}
