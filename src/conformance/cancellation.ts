import assert from 'node:assert/strict'
import type { CallOptions, Store } from '../store.js'
import { type Hold, noVerdict } from './bench.js'
import type { Check } from './check.js'

export const cancellationChecks: readonly Check[] = [
  {
    name: 'cancellation: a call that is cancelled before it is made has no effect, and says so',
    async run(bench) {
      const store = await bench.open()
      const hold = await bench.hold(store, bench.key())
      const free = bench.claim(bench.key())
      const signal = AbortSignal.abort(new Error('cancelled by the suite'))
      const calls = [['acquire', () => store.acquire(free, { signal })] as const, ...callsOn(store, hold, { signal })]
      for (const [what, call] of calls) assert.equal((await noVerdict(call(), `a cancelled ${what}`)).effect, 'none')
      await bench.assertFree(free.key, 'after an acquire that was cancelled before it was made')
      await bench.assertTaken(hold.key, 'after cancelled calls')
      assert.equal((await bench.renew(store, hold)).kind, 'renewed')
    },
  },
  {
    name: 'cancellation: a call that is cancelled on its way settles, and can be given back (B131, B222)',
    async run(bench) {
      const store = await bench.open()
      for (let round = 0; round < 10; round++) {
        const claim = bench.claim(bench.key())
        const cancel = new AbortController()
        const asked = Promise.allSettled([store.acquire(claim, { signal: cancel.signal })])
        for (let i = 0; i < round; i++) await null
        cancel.abort(new Error('cancelled by the suite'))
        const [result] = await bench.during(asked)
        if (result?.status === 'rejected') await noVerdict(Promise.reject(result.reason), 'a cancelled acquire')
        await store.release(claim, bench.call)
        await bench.assertFree(claim.key, 'after the release of a cancelled claim')
      }
    },
  },
  {
    name: 'cancellation: a closed client answers nothing, closes twice, and disturbs no other',
    async run(bench) {
      const [closed, other] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(other, bench.key())
      await closed.close()
      await closed.close()
      const free = bench.claim(bench.key())
      const calls = [['acquire', () => closed.acquire(free, bench.call)] as const, ...callsOn(closed, hold, bench.call)]
      for (const [what, call] of calls) {
        assert.equal((await noVerdict(call(), `${what} through a closed client`)).effect, 'none')
      }
      await bench.assertFree(free.key, 'after an acquire through a closed client')
      assert.equal((await bench.renew(other, hold)).kind, 'renewed')
    },
  },
]

/** Every member but acquire, each on a lease that is held. */
function callsOn(
  store: Store,
  hold: Hold,
  call: CallOptions,
): (readonly [string, () => Promise<unknown> | undefined])[] {
  const { key, owner, ttlMs, lockDelayMs, fence, fenceFloor } = hold
  const list = async (): Promise<void> => {
    for await (const _ of store.list?.(key.namespace, '', call) ?? []);
  }
  return [
    ['renew', () => store.renew({ key, owner, ttlMs, lockDelayMs, fence, fenceFloor }, call)],
    ['release', () => store.release({ key, owner }, call)],
    ['inspect', () => store.inspect(key, call)],
    ['probe', () => store.probe(call)],
    ...(store.list ? [['list', list] as const] : []),
    ...(store.revoke ? [['revoke', () => store.revoke?.(key, { force: true }, call)] as const] : []),
    ...(store.watch ? [['watch', () => store.watch?.({ key, owner }, () => {}, call)] as const] : []),
  ]
}
