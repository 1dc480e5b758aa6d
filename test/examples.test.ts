import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const DEMO = fileURLToPath(new URL('../examples/demo.js', import.meta.url))

test('the demo shows a take-over after kill -9, and a late write refused, in about ten seconds', (t) => {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, [DEMO], { encoding: 'utf8', timeout: 60_000 })
  t.diagnostic(`${((performance.now() - started) / 1000).toFixed(1)} s`)
  assert.equal(stderr, '')
  assert.equal(status, 0, stdout)
  assert.match(stdout, /bob took over \d+ ms later, with a larger fence: true/)
  assert.match(stdout, /carol +tries to write all the same: refused by the resource: fence \d+ is stale/)
  assert.match(stdout, /Written: bob, dave\. Nobody twice, nobody too late\.\n$/)
})
