import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import Database from 'better-sqlite3'
import { sqliteGuard } from '../../src/fencing/index.js'
import { StaleFenceError } from '../../src/index.js'

const lease = (fence: bigint, key = 'job') => ({ key, fence })

/** An account with a guard; `add` reads and writes as an application would. */
function stage() {
  const database = new Database(':memory:')
  database.exec('CREATE TABLE account (total INTEGER); INSERT INTO account VALUES (100)')
  const total = () => database.prepare('SELECT total FROM account').pluck().get() as number
  const set = (value: number) => database.prepare('UPDATE account SET total = ?').run(value)
  return { database, guard: sqliteGuard(database), total, set }
}

describe('a SQLite guard', () => {
  test('accepts higher fences and equal ones, refuses lower ones with nothing written', () => {
    const { guard, total, set } = stage()
    guard.write(lease(5n), () => set(1))
    guard.write(lease(5n), () => set(2))
    guard.write(lease(7n), () => set(3))
    assert.throws(
      () => guard.write(lease(6n), () => set(4)),
      (error) =>
        error instanceof StaleFenceError &&
        error.code === 'ERR_LEASE_STALE_FENCE' &&
        error.presented === 6n &&
        error.current === 7n &&
        JSON.parse(JSON.stringify(error)).current === '7',
    )
    assert.equal(total(), 3)
  })

  test('returns what the write returns; a write that throws undoes itself, and its fence', () => {
    const { guard, total, set } = stage()
    assert.equal(
      guard.write(lease(5n), () => 'value'),
      'value',
    )
    const fault = new Error('fault')
    assert.throws(
      () =>
        guard.write(lease(9n), () => {
          set(1)
          throw fault
        }),
      fault,
    )
    assert.equal(total(), 100)
    guard.write(lease(6n), () => set(2))
    assert.equal(total(), 2)
  })

  test('the read trap: with advance no acknowledged update is lost; control: without it one is', () => {
    for (const advances of [true, false]) {
      const { guard, total, set } = stage()
      const seenByA = total()
      if (advances) guard.advance(lease(34n))
      const seenByB = total()
      let acknowledged = 0
      try {
        guard.write(lease(33n), () => set(seenByA + 1))
        acknowledged++
      } catch (error) {
        assert.ok(error instanceof StaleFenceError)
      }
      guard.write(lease(34n), () => set(seenByB + 10))
      acknowledged += 10
      assert.equal(total() === 100 + acknowledged, advances)
    }
  })

  test('resources are apart: by key, or together under one name', () => {
    const { database, guard, set } = stage()
    guard.write(lease(9n, 'a'), () => set(1))
    guard.write(lease(1n, 'b'), () => set(2))
    const together = sqliteGuard(database, { resource: 'account', table: 'odd "name"' })
    together.advance(lease(9n, 'a'))
    assert.throws(() => together.advance(lease(1n, 'b')), StaleFenceError)
  })

  test('fences beyond 2^53 are exact, to the end of 64 bits', () => {
    const { guard } = stage()
    guard.advance(lease(2n ** 53n + 1n))
    assert.throws(() => guard.advance(lease(2n ** 53n)), StaleFenceError)
    guard.advance(lease(2n ** 63n - 1n))
    assert.throws(() => guard.advance(lease(2n ** 63n - 2n)), StaleFenceError)
    assert.throws(() => guard.advance(lease(2n ** 63n)), RangeError)
    assert.throws(() => guard.advance(lease(-1n)), RangeError)
  })

  test('what would write later, unguarded, is refused: async functions before they are called, thenables after', () => {
    const { database, guard, total, set } = stage()
    let called = false
    const write = guard.write as (lease: unknown, write: unknown) => unknown
    const later = async () => {
      called = true
    }
    // @ts-expect-error: an async function does not even compile
    assert.throws(() => guard.write(lease(1n), later), /synchronous/)
    assert.equal(called, false)
    // biome-ignore lint/suspicious/noThenProperty: a lazy query, as query builders make them
    const lazy = { then: () => set(1) }
    assert.throws(() => write(lease(1n), () => lazy), /synchronous/)
    assert.equal(total(), 100)
    assert.equal(database.inTransaction, false)
  })

  test('is told plainly that it needs a transaction of its own', () => {
    const { database, guard } = stage()
    database.exec('BEGIN')
    assert.throws(() => guard.advance(lease(1n)), /transaction of its own/)
    assert.equal(database.inTransaction, true, "the caller's transaction is left alone")
  })

  test('wrong arguments are refused, never taken for a default', () => {
    const { database } = stage()
    const make = sqliteGuard as (database?: unknown, options?: unknown) => { advance(lease?: unknown): void }
    const refused: [unknown, unknown][] = [
      [undefined, {}],
      [{}, {}],
      [database, 'reports'],
      [database, null],
      [database, { ressource: 'reports' }],
      ...[null, '', 7, Number.NaN, {}, true, 'a\0b', '\ud800'].map((resource): [unknown, unknown] => [
        database,
        { resource },
      ]),
      [database, { table: '' }],
    ]
    for (const [first, second] of refused) assert.throws(() => make(first, second), TypeError, JSON.stringify(second))
    for (const wrong of [undefined, null, {}, { key: 'a', fence: 1 }, { fence: 1n }]) {
      assert.throws(() => make(database, {}).advance(wrong), TypeError)
    }
    assert.throws(() => (make(database) as unknown as { write(lease: unknown): void }).write(lease(1n)), TypeError)
  })
})
