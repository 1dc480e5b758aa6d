import assert from 'node:assert/strict'
import type { Key, Store } from '../store.js'
import type { Bench } from './bench.js'
import type { Check } from './check.js'

const can = (store: Store) => store.revoke !== undefined
const plainIs = (what: Store['traits']['revoke']) => (store: Store) => can(store) && store.traits.revoke === what

export const revokeChecks: readonly Check[] = [
  {
    name: 'revoke: plain refuses renewals, and the key stays taken until its holder lets go',
    applies: plainIs('refuses-renewal'),
    async run(bench) {
      const [store, operator] = [await bench.open(), await bench.open()]
      const claim = bench.claim(bench.key())
      const hold = bench.held(claim, await store.acquire(claim, bench.call))
      for (let i = 0; i < 2; i++) assert.equal((await revoke(bench, operator, hold.key, false))?.kind, 'refusing')
      assert.deepEqual(await bench.renew(store, hold), { kind: 'lost', reason: 'revoked' })
      assert.equal((await store.inspect(hold.key, bench.call))?.state, 'revoked')
      const again = await store.acquire(claim, bench.call)
      assert.ok(
        again.kind === 'held' && !again.queued,
        'its owner asked for it again, and a revoked key was given to it',
      )
      await bench.assertTaken(hold.key, 'after a plain revoke')
      assert.equal((await bench.release(store, hold)).kind, 'released')
      await bench.assertFree(hold.key, 'when its holder has let go')
    },
  },
  {
    name: 'revoke: plain asks the holder, and takes nothing away',
    applies: plainIs('asks'),
    async run(bench) {
      const [store, operator] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(store, bench.key())
      assert.equal((await revoke(bench, operator, hold.key, false))?.kind, 'asked')
      assert.equal((await bench.renew(store, hold)).kind, 'renewed')
      await bench.assertTaken(hold.key, 'after a plain revoke')
    },
  },
  {
    name: 'revoke: plain is refused where the store can only force',
    applies: plainIs('force-only'),
    async run(bench) {
      const [store, operator] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(store, bench.key())
      await assert.rejects(async () => revoke(bench, operator, hold.key, false))
      assert.equal((await bench.renew(store, hold)).kind, 'renewed')
    },
  },
  {
    name: 'revoke: force frees the key at once',
    applies: can,
    async run(bench) {
      const [store, operator] = [await bench.open(), await bench.open()]
      const hold = await bench.hold(store, bench.key())
      const neighbour = await bench.hold(store, bench.key())
      const outcome = await revoke(bench, operator, hold.key, true)
      assert.equal(outcome?.kind, 'freed')
      const freed = await bench.eventually(() => bench.isFree(hold.key), bench.slackMs)
      assert.ok(freed, 'the key must be free after it was taken away')
      if (!outcome?.alsoFreed)
        assert.equal((await bench.renew(store, neighbour)).kind, 'renewed', 'a neighbour went with it')
    },
  },
  {
    name: 'revoke: of a free key is absent, and leaves nothing behind',
    applies: can,
    async run(bench) {
      const store = await bench.open()
      const key = bench.key()
      const modes = bench.traits.revoke === 'force-only' ? [true] : [false, true]
      for (const force of modes) {
        assert.equal((await revoke(bench, store, key, force))?.kind, 'absent')
        const hold = await bench.hold(store, key)
        assert.equal((await bench.renew(store, hold)).kind, 'renewed')
        await bench.release(store, hold)
      }
    },
  },
]

const revoke = async (bench: Bench, store: Store, key: Key, force: boolean) =>
  store.revoke?.(key, { force }, bench.call)
