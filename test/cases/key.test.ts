import assert from 'node:assert/strict'
import { createLeases } from '../../src/index.js'
import { type Bed, onBed } from '../support/bed.js'

/** Every key must be free although all before it are held, and be the one that the store then names. */
async function areDifferent(here: Bed, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const lease = await here.runUntil(here.leases.tryAcquire(key))
    assert.ok(lease, `${JSON.stringify(key)} must not be another key`)
    assert.equal((await here.runUntil(here.others.inspect(key)))?.key, key)
    assert.equal(await here.runUntil(here.others.tryAcquire(key)), null)
  }
}

onBed('B068: two namespaces do not see each other, however their parts are cut', async (here) => {
  const inA = createLeases(here.store, { namespace: 'a', environment: here.env })
  const inAB = createLeases(here.store, { namespace: 'a:b', environment: here.env })
  assert.ok(await here.runUntil(inA.tryAcquire('b:c')))
  assert.ok(await here.runUntil(inAB.tryAcquire('c')))
  assert.ok(await here.runUntil(here.leases.tryAcquire('c')))
  assert.equal(
    await here.runUntil(createLeases(here.store, { namespace: 'a', environment: here.env }).tryAcquire('b:c')),
    null,
  )
  await here.runUntil(Promise.all([inA.close(), inAB.close()]))
})

onBed('B137: keys that differ in case, trailing spaces, accents or their encoding are different keys', (here) =>
  areDifferent(here, [
    'Job',
    'job',
    'JOB',
    'job ',
    ' job',
    'job\t',
    'jöb',
    'jo\u0308b',
    'straße',
    'strasse',
    'ß'.repeat(33),
    'ß'.repeat(34),
  ]),
)

onBed('B159: a key never waits for another one that it is the beginning of', async (here) => {
  await areDifferent(here, ['a', 'a/', 'a/b', 'ab', 'a/1', 'a\u0000', 'a*', 'a%', 'a_', 'a['])
  const under = async (prefix: string) => {
    const names: string[] = []
    for await (const { key } of here.leases.list(prefix)) names.push(key)
    return names.sort()
  }
  assert.deepEqual(await here.runUntil(under('a/')), ['a/', 'a/1', 'a/b'])
  assert.deepEqual(await here.runUntil(under('a%')), ['a%'])
})

onBed('B184: odd keys are keys like all others', (here) =>
  areDifferent(here, [
    'a//b',
    'a/b',
    '/',
    '.',
    '..',
    '../..',
    'zookeeper',
    '\u0000',
    '\u0099',
    '\n',
    '😀',
    '😀😀',
    '{x}',
    '{x}a',
    '__proto__',
    'constructor',
    ' ',
  ]),
)

onBed('B184: at most 1,024 bytes of UTF-8, and nothing that has no UTF-8', async (here) => {
  await areDifferent(here, [
    'k'.repeat(1024),
    'k'.repeat(1023),
    `${'😀'.repeat(255)}ab€`.slice(0, 511),
    '😀'.repeat(256),
  ])
  for (const [key, message] of [
    ['k'.repeat(1025), 'key must be at most 1024 bytes of UTF-8, but got 1025'],
    [`${'😀'.repeat(256)}a`, 'key must be at most 1024 bytes of UTF-8, but got 1025'],
    ['k'.repeat(4096), 'key must be at most 1024 bytes of UTF-8, but got 4096'],
    ['a\ud800', /^key must be well-formed Unicode \(no lone surrogates\), but got/],
    ['\udc00a', /^key must be well-formed Unicode \(no lone surrogates\), but got/],
  ] as const) {
    const expected = { name: 'RangeError', message }
    for (const call of [
      here.leases.tryAcquire(key),
      here.leases.acquire(key),
      here.leases.inspect(key),
      here.leases.revoke(key),
    ]) {
      await assert.rejects(call, expected)
    }
  }
})
