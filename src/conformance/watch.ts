import assert from 'node:assert/strict'
import type { Store } from '../store.js'
import type { Check } from './check.js'

const notifies = (store: Store) => store.traits.wakeup === 'notify'
/** Far below any poll, far above a notification. */
const HEARD_WITHIN_MS = 1_000

export const watchChecks: readonly Check[] = [
  {
    name: 'watch: those who wait hear of a release through another client',
    applies: notifies,
    async run(bench) {
      const [store, waiting] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(store, bench.key())
      let hints = 0
      const watch = await waiting.watch?.(bench.claim(hold.key), () => hints++, bench.call)
      await bench.release(store, hold)
      assert.ok(await bench.eventually(() => hints > 0, HEARD_WITHIN_MS), 'a release went unheard')
      watch?.close()
    },
  },
  {
    name: 'watch: the holder hears that its lease was revoked',
    applies: (store) => notifies(store) && store.revoke !== undefined && store.traits.revoke !== 'force-only',
    async run(bench) {
      const [store, operator] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(store, bench.key())
      let hints = 0
      const watch = await store.watch?.(hold, () => hints++, bench.call)
      await operator.revoke?.(hold.key, { force: false }, bench.call)
      assert.ok(await bench.eventually(() => hints > 0, HEARD_WITHIN_MS), 'a revoke went unheard')
      watch?.close()
    },
  },
  {
    name: 'watch: is silent once closed, and does not hold up its client',
    applies: (store) => store.watch !== undefined,
    async run(bench) {
      const [store, waiting] = [await bench.open(), await bench.open()]
      const [first, second] = [await bench.hold(store, bench.key()), await bench.hold(store, bench.key())]
      let hints = 0
      const closed = await waiting.watch?.(bench.claim(first.key), () => hints++, bench.call)
      await waiting.watch?.(bench.claim(second.key), () => hints++, bench.call)
      closed?.close()
      closed?.close()
      hints = 0
      await bench.release(store, first)
      await bench.wait(bench.slackMs)
      assert.equal(hints, 0, 'a closed watch was heard')
      await waiting.close()
      hints = 0
      await bench.release(store, second)
      await bench.wait(bench.slackMs)
      assert.equal(hints, 0, 'the watch of a closed client was heard')
    },
  },
]
