import assert from 'node:assert/strict'
import type { Key } from '../store.js'
import type { Bench, Hold } from './bench.js'
import type { Check } from './check.js'

/** Each differs from another by what somebody's keys were folded, cut, joined or matched by (B137, B159, B184). */
// biome-ignore format: a list
const NAMES = [
  'a', 'A', 'a ', ' a', 'ab', 'a/', 'a/b', '/a', 'a//b', 'a/./b', 'a:b', 'a:', 'a.b', 'a_b', 'a%', 'a*', 'a?', 'a%2Fb', '%61',
  'a\u0000', 'a\u0000b', '\u00e1', 'a\u0301', 'ａ', '1', '01', '1.0', '-1', 'null', '{a}', '{a}b', '"a"', "'a'", '\\a', 'x'.repeat(300),
  `${'x'.repeat(300)}y`,
]

export const isolationChecks: readonly Check[] = [
  {
    name: 'isolation: different keys are different leases, whatever their names have in common',
    async run(bench) {
      const store = await bench.open()
      const { namespace } = bench.key()
      const names = NAMES.map((name) => ({ namespace, name }))
      const holds = []
      for (const key of [...names, ...namespaces(namespace)]) holds.push(await grant(bench, store, key))
      const [first, ...rest] = holds as [Hold, ...Hold[]]
      await bench.release(store, first)
      for (const hold of rest) {
        assert.equal(
          (await bench.renew(store, hold)).kind,
          'renewed',
          `${JSON.stringify(hold.key)} went with another key`,
        )
      }
    },
  },
  {
    name: 'isolation: the leases of one client share no fate',
    async run(bench) {
      const store = await bench.open()
      const holds = []
      for (let i = 0; i < 4; i++) holds.push(await bench.hold(store, bench.key()))
      const [first, second, ...rest] = holds as [Hold, Hold, ...Hold[]]
      await bench.release(store, first)
      await bench.wait(second.grantedTtlMs / 2)
      for (const hold of rest) assert.equal((await bench.renew(store, hold)).kind, 'renewed')
      await bench.wait(second.grantedTtlMs / 2 + bench.slackMs)
      for (const hold of rest) await bench.assertTaken(hold.key, 'whatever became of its neighbours')
    },
  },
]

/** Pairs that are one text as soon as namespace and name are joined without care. */
function namespaces(namespace: string): Key[] {
  return ['', ':', '/', '.', '-', '\u0000', '|', '"'].flatMap((glue) => [
    { namespace, name: `n${glue}name${glue.length}` },
    { namespace: `${namespace}${glue}n`, name: `name${glue.length}` },
  ])
}

async function grant(bench: Bench, store: Parameters<Bench['hold']>[0], key: Key): Promise<Hold> {
  const claim = bench.claim(key)
  const outcome = await store.acquire(claim, bench.call)
  assert.equal(outcome.kind, 'granted', `${JSON.stringify(key)} is free, and another key is in its way`)
  return bench.held(claim, outcome)
}
