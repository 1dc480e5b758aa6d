import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomBytes } from '../../src/random-bytes.js'

test('bytes come in the number asked for, never twice, and of every value', () => {
  const seen = new Set<string>()
  const values = new Set<number>()
  for (let i = 0; i < 5_000; i++) {
    const bytes = randomBytes(20)
    assert.equal(bytes.length, 20)
    seen.add(bytes.toString('hex'))
    for (const byte of bytes) values.add(byte)
  }
  assert.equal(seen.size, 5_000)
  assert.equal(values.size, 256)
  assert.equal(randomBytes(5_000).length, 5_000, 'more than is read ahead')
})
