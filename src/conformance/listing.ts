import assert from 'node:assert/strict'
import type { Holding, Store } from '../store.js'
import { type Bench, type Hold, show } from './bench.js'
import type { Check } from './check.js'

const lists = (store: Store) => store.list !== undefined && store.traits.listsNames

export const listingChecks: readonly Check[] = [
  {
    name: 'list: everything held in the namespace, in the order of names, and nothing else',
    applies: lists,
    async run(bench) {
      const store = await bench.open()
      const { namespace } = bench.key()
      const names = ['a/b', 'B', 'a', 'ab', 'b']
      const holds: Hold[] = []
      for (const name of names) holds.push(await bench.hold(store, { namespace, name }, { label: `label of ${name}` }))
      await bench.hold(store, { namespace: `${namespace}2`, name: 'a elsewhere' })
      const released = await bench.hold(store, { namespace, name: 'released' })
      await bench.release(store, released)

      const holdings = await list(bench, await bench.open(), namespace, '')
      assert.deepEqual(
        holdings.map(({ key }) => key),
        ['B', 'a', 'a/b', 'ab', 'b'],
      )
      for (const holding of holdings) {
        const hold = holds.find(({ key }) => key.name === holding.key)
        assert.equal(holding.namespace, namespace)
        assert.equal(holding.state, 'held')
        assert.equal(holding.fence, hold?.fence)
        assert.ok(hold && !show(holding).includes(hold.owner), 'the owner token is shown')
      }
    },
  },
  {
    name: 'list: a prefix is a prefix, not a pattern',
    applies: lists,
    async run(bench) {
      const store = await bench.open()
      const { namespace } = bench.key()
      const names = ['a%c', 'a*c', 'a?c', 'abc', 'a_c', 'ABC', 'a[b]c', 'a\\c', "a'c"]
      for (const name of names) await bench.hold(store, { namespace, name })
      for (const prefix of ['a', 'a%', 'a*', 'a?', 'a_', 'a[b]', 'a\\', "a'", 'abcd', 'A']) {
        const listed = (await list(bench, store, namespace, prefix)).map(({ key }) => key)
        const expected = names.filter((name) => name.startsWith(prefix))
        assert.deepEqual(new Set(listed), new Set(expected), `the names that start with ${prefix}`)
      }
    },
  },
]

async function list(bench: Bench, store: Store, namespace: string, prefix: string): Promise<Holding[]> {
  const holdings: Holding[] = []
  for await (const holding of store.list?.(namespace, prefix, bench.call) ?? []) holdings.push(holding)
  return holdings
}
