import assert from 'node:assert/strict'
import type { Check } from './check.js'

/** Well-formed names that mean something to a file system, a pattern, a query, a script or an object (B017, B136, B184). */
// biome-ignore format: a list
const HOSTILE = [
  '{}', '{a}{b}', ':', '::', '/', '//', '.', '..', '../..', ' ', '\t', 'two\nlines', '\u0000', '\u0099', '\u007f', '\ufeff', '\u202e', '🔒',
  '👩‍👩‍👧', 'naïve', '键', '%', '%s', '%00', '_', '*', '?', '[a-z]', '^a$', '\\', '\\x', '"', "'", "'; --", '`', '$1', '${a}', '#', '~', '-rf',
  '__proto__', 'constructor', 'toString', 'zookeeper', 'null', 'undefined', '0', '-0', '1e3', 'x'.repeat(1024), '🔒'.repeat(256),
]

export const namesChecks: readonly Check[] = [
  {
    name: 'names: every well-formed name up to 1,024 bytes can be held, renewed, seen and released',
    async run(bench) {
      const store = await bench.open()
      for (const name of HOSTILE) {
        const shown = JSON.stringify(name.slice(0, 20))
        const hold = await bench.hold(store, bench.key(name))
        assert.equal((await bench.renew(store, hold)).kind, 'renewed', `${shown} is not renewed`)
        const holding = await store.inspect(hold.key, bench.call)
        assert.ok(holding, `${shown} is not seen`)
        if (bench.traits.listsNames) assert.equal(holding.key, name)
        await bench.assertTaken(hold.key, `when its name is ${shown}`)
        assert.equal((await bench.release(store, hold)).kind, 'released', `${shown} is not released`)
      }
    },
  },
  {
    name: 'names: every well-formed namespace is as good as another',
    async run(bench) {
      const store = await bench.open()
      const { namespace } = bench.key()
      for (const hostile of ['{}', '/../', ':', ' ', '\u0000', '🔒', '%', '*', "'", '\\']) {
        const key = { namespace: `${hostile}${namespace}${hostile}`, name: 'key' }
        const hold = await bench.hold(store, key)
        assert.equal((await store.inspect(key, bench.call))?.namespace, key.namespace)
        assert.equal((await bench.renew(store, hold)).kind, 'renewed', `${JSON.stringify(hostile)} is not renewed`)
        assert.equal((await bench.release(store, hold)).kind, 'released', `${JSON.stringify(hostile)} is not released`)
      }
    },
  },
]
