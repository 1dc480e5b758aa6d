import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomBytes, randomText } from '../../src/random-bytes.js'

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

test('text has the bits of as many bytes, and shares none with what others were given', () => {
  const seen = new Set<string>()
  for (let i = 0; i < 2_000; i++) {
    const text = randomText(20)
    assert.match(text, /^[\w-]{27}$/)
    seen.add(text).add(randomBytes(20).toString('base64url'))
  }
  assert.equal(seen.size, 4_000)
})
