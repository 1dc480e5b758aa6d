/** What is no lease file, and what makes one. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs' // biome-ignore format: a list
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../src/errors.js'
import type { HeldRef, Store } from '../../src/store.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { stage } from '../support/sqlite-actors.js'
import { call, hold, lasting } from '../support/sqlite-holds.js'
import { privileged } from '../support/sqlite-hosts.js'
import { withRaw } from '../support/sqlite-raw.js'

const heldOnce = (): HeldRef => ({ ...lasting(), fence: 7n })

/** Every call but `acquire`. */
const askers: [string, (store: Store, held: HeldRef) => Promise<unknown>, unknown][] = [
  ['renew', (store, held) => store.renew(held, call()), { kind: 'lost', reason: 'missing' }],
  ['release', (store, held) => store.release(held, call()), { kind: 'absent' }],
  ['revoke', async (store, held) => store.revoke?.(held.key, { force: true }, call()), { kind: 'absent' }],
  ['inspect', (store, held) => store.inspect(held.key, call()), null],
  [
    'list',
    async (store) => {
      const found: unknown[] = []
      for await (const holding of store.list?.('test', '', call()) ?? []) found.push(holding)
      return found
    },
    [],
  ],
]

async function refusedBy(store: Store, pattern: RegExp, withAcquire = true): Promise<void> {
  const isRefusal = (error: unknown) =>
    error instanceof StoreError &&
    error.effect === 'none' &&
    pattern.test(error.message) &&
    !error.message.includes('\n')
  for (const [, ask] of askers) await assert.rejects(ask(store, heldOnce()), isRefusal)
  await assert.rejects(store.probe(call()), isRefusal)
  if (withAcquire) await assert.rejects(store.acquire(lasting(), call()), isRefusal)
}

test('no file: every answer is that nothing is held, and only an acquisition makes the file', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'l.db') })
    for (const [name, ask, answer] of askers) assert.deepEqual(await ask(store, heldOnce()), answer, name)
    assert.match((await store.probe(call())).findings[0]?.message ?? '', /no lease file at .* yet/)
    let hints = 0
    const watch = await store.watch?.(heldOnce(), () => hints++, call())
    await sleep(300)
    assert.deepEqual(readdirSync(folder), [])
    assert.equal(hints, 1, 'told that the key is free')
    watch?.close()
    await hold(store)
    assert.deepEqual(readdirSync(folder), ['l.db', 'l.db-shm', 'l.db-wal'])
    await store.close()
  })
})

for (const [name, ask, answer] of askers) {
  test(`the file is removed while it is open: ${name} does not make it again`, async () => {
    await stage(async (folder) => {
      const store = sqliteStore({ path: join(folder, 'l.db') })
      const held = await hold(store)
      for (const file of readdirSync(folder)) rmSync(join(folder, file))
      for (let time = 0; time < 2; time++) assert.deepEqual(await ask(store, held), answer)
      assert.deepEqual(readdirSync(folder), [])
      await hold(store)
      await store.close()
    })
  })
}

test('one call finds the file gone: the watches of the same store are told, although nobody makes it again', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'l.db') })
    const [held, other] = [await hold(store), { ...lasting({ name: 'other' }) }]
    assert.equal((await store.acquire(other, call())).kind, 'granted')
    let hints = 0
    const watch = await store.watch?.(other, () => hints++, call())
    for (const file of readdirSync(folder)) rmSync(join(folder, file))
    assert.equal((await store.renew(held, call())).kind, 'lost')
    await sleep(500)
    assert.equal(hints, 1)
    watch?.close()
    await store.close()
  })
})

test("an application's database without our tables: asking leaves it as it is", async () => {
  await stage(async (folder) => {
    const path = join(folder, 'app.db')
    withRaw(path, (raw) => raw.exec('CREATE TABLE app (id INTEGER)'))
    const store = sqliteStore({ path })
    for (const [name, ask, answer] of askers) assert.deepEqual(await ask(store, heldOnce()), answer, name)
    await store.probe(call())
    assert.deepEqual(
      withRaw(path, (raw) => raw.prepare('SELECT name FROM sqlite_schema').all()),
      [{ name: 'app' }],
    )
    await store.close()
  })
})

test('where it cannot be told whether there is a file, there is no verdict', async () => {
  await stage(async (folder) => {
    const ask = async (path: string, pattern: RegExp) => {
      const store = sqliteStore({ path })
      await refusedBy(store, pattern)
      await store.close()
    }
    writeFileSync(join(folder, 'file'), '')
    symlinkSync('nowhere', join(folder, 'dangling'))
    symlinkSync('circle', join(folder, 'circle'))
    const before = readdirSync(folder)
    await ask(join(folder, 'none', 'l.db'), /no folder .*mkdir -p/)
    await ask(join(folder, 'file', 'l.db'), /there is no folder/)
    await ask(join(folder, 'dangling'), /dangling is a symbolic link to nowhere, which leads nowhere/)
    await ask(join(folder, 'dangling', 'sub', 'l.db'), /dangling is a symbolic link to nowhere, which leads nowhere/)
    await ask(join(folder, 'circle'), /in a circle/)
    await ask(join(folder, 'x'.repeat(256)), /too long/)
    await ask(join(folder, 'x'.repeat(250)), /too long/)
    let deep = folder
    while (deep.length < 420) deep = join(deep, 'd'.repeat(60))
    mkdirSync(deep, { recursive: true })
    await ask(join(deep, 'l'.repeat(505 - deep.length - 1)), /too long: SQLite takes at most 504 bytes/)
    assert.deepEqual(readdirSync(deep), [])
    const longest = sqliteStore({ path: join(deep, 'l'.repeat(504 - deep.length - 1)) })
    await hold(longest)
    await longest.close()
    assert.deepEqual(
      readdirSync(folder).filter((name) => !/^d+$/.test(name)),
      before,
    )
  })
})

test('no permission to look is no verdict', privileged, async () => {
  await stage(async (folder, actor) => {
    const inner = join(folder, 'inner')
    mkdirSync(inner)
    chmodSync(folder, 0o755)
    chmodSync(inner, 0o700)
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    const stranger = await actor({ through: nobody, path: join(inner, 'l.db') })
    const refusal = { effect: 'none', message: /no permission/ }
    await assert.rejects(stranger.renew(heldOnce()), refusal)
    await assert.rejects(stranger.release(heldOnce()), refusal)
    await assert.rejects(stranger.inspect(heldOnce().key), refusal)
  })
})

test('devices, pipes and sockets are refused before SQLite touches them, as the file and beside it', async () => {
  await stage(async (folder) => {
    const server = createServer()
    // A short name: that of a socket is limited.
    const short = mkdtempSync(join(tmpdir(), 'hf-'))
    try {
      await new Promise<void>((resolve) => server.listen(join(short, 's'), resolve))
      execFileSync('mkfifo', [join(folder, 'pipe'), join(folder, 'l.db-wal')])
      symlinkSync('/dev/null', join(folder, 'link'))
      const specials = [
        '/dev/zero',
        '/dev/null',
        '/dev/random',
        '/dev/full',
        join(folder, 'pipe'),
        join(folder, 'link'),
        join(short, 's'),
      ]
      for (const path of specials) {
        const store = sqliteStore({ path })
        await refusedBy(store, /is not a regular file/)
        await store.close()
      }
      const beside = sqliteStore({ path: join(folder, 'l.db') })
      await assert.rejects(beside.acquire(lasting(), call()), {
        effect: 'none',
        message: /l\.db-wal is not a regular file/,
      })
      await beside.close()
      assert.deepEqual(
        readdirSync('/dev').filter((name) => /-(journal|wal|shm)$/.test(name)),
        [],
      )
      assert.ok(statSync('/dev/zero').isCharacterDevice())
    } finally {
      server.close()
      rmSync(short, { recursive: true, force: true })
    }
  })
})
