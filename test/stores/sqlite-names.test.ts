/** One lease file must have one name: SQLite puts the log beside the name by which it is opened. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs' // biome-ignore format: a list
import { join } from 'node:path'
import { test } from 'node:test'
import { StoreUnsafeError } from '../../src/errors.js'
import type { HeldRef, Store } from '../../src/store.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { type Actor, stage } from '../support/sqlite-actors.js'
import { call, hold, lasting } from '../support/sqlite-holds.js'
import { privileged } from '../support/sqlite-hosts.js'
import { openRaw } from '../support/sqlite-raw.js'

const refusesAll = async (store: Store, held: HeldRef, message: RegExp): Promise<void> => {
  const isRefusal = (error: unknown) => error instanceof StoreUnsafeError && message.test(error.message)
  await assert.rejects(store.acquire(lasting(), call()), isRefusal)
  await assert.rejects(store.renew(held, call()), isRefusal)
  await assert.rejects(store.release(held, call()), isRefusal)
  await assert.rejects(store.inspect(held.key, call()), isRefusal)
  await assert.rejects(store.probe(call()), isRefusal)
}

/** Two folders, and the lease file in the first of them, held. */
async function twoFolders(
  play: (facts: {
    a: string
    b: string
    holder: Store
    held: HeldRef
    open(path: string): Store
    actor(options: { path: string }): Promise<Actor>
  }) => Promise<void>,
): Promise<void> {
  await stage(async (folder, actor) => {
    for (const name of ['a', 'b']) mkdirSync(join(folder, name))
    const stores: Store[] = []
    const open = (path: string) => {
      const store = sqliteStore({ path })
      stores.push(store)
      return store
    }
    const [a, b] = [join(folder, 'a', 'l.db'), join(folder, 'b', 'l.db')]
    const holder = open(a)
    try {
      await play({ a, b, holder, held: await hold(holder), open, actor })
    } finally {
      await Promise.all(stores.map((store) => store.close()))
    }
  })
}

test('a hard link made while held: refused by either name to everybody, until one of them is gone', async () => {
  await twoFolders(async ({ a, b, holder, held, open }) => {
    linkSync(a, b)
    for (const store of [open(b), open(a), holder]) await refusesAll(store, held, /2 names \(hard links\)/)
    assert.deepEqual(readdirSync(join(b, '..')), ['l.db'], 'SQLite touched nothing')
    rmSync(b)
    assert.equal((await holder.renew(held, call())).kind, 'renewed')
    assert.equal((await open(a).acquire(lasting(), call())).kind, 'held')
  })
})

test('of two names the first is removed: the holder is told, and nobody believes by both', async () => {
  await twoFolders(async ({ a, b, holder, held, open }) => {
    linkSync(a, b)
    rmSync(a)
    assert.deepEqual(await holder.renew(held, call()), { kind: 'lost', reason: 'missing' })
    const next = await hold(open(b))
    assert.ok(next.fence > held.fence)
  })
})

for (const replace of [false, true]) {
  test(`a file linked over another that is held there${replace ? ', by renaming' : ''}: that holder is told`, async () => {
    await twoFolders(async ({ a, b, open }) => {
      const other = open(b)
      const held = await hold(other)
      if (replace) {
        renameSync(a, b)
      } else {
        rmSync(b)
        linkSync(a, b)
      }
      assert.deepEqual(await other.renew(held, call()), { kind: 'lost', reason: 'missing' })
    })
  })
}

const moves: [string, (a: string, b: string) => unknown][] = [
  ['to another folder', (a, b) => [renameSync(a, b), symlinkSync(b, a)]],
  ['within its folder', (a) => [renameSync(a, `${a}.moved`), symlinkSync('l.db.moved', a)]],
]
for (const [what, move] of moves) {
  for (const link of [false, true]) {
    test(`moved ${what} and linked from its old name while held${link ? ' through a link' : ''}: a loss`, async () => {
      await twoFolders(async ({ a, b, holder: first, open }) => {
        // Two connections of one process to one inode share more than those of two.
        await first.close()
        const path = link ? `${a}.link` : a
        if (link) symlinkSync(a, path)
        const holder = open(path)
        const held = await hold(holder, lasting({ name: 'moved' }))
        move(a, b)
        assert.deepEqual(await holder.renew(held, call()), { kind: 'lost', reason: 'missing' })
        const newcomer = open(path)
        const taken = await newcomer.acquire(lasting({ name: 'moved' }), call())
        assert.ok(taken.kind === 'held' || (taken.kind === 'granted' && taken.fence > held.fence))
        assert.equal((await holder.acquire(lasting({ name: 'moved' }), call())).kind, 'held', 'all use one log')
      })
    })
  }
}

test('moved and linked while two stores of one process have it open: no verdict until the first has let go', async () => {
  await twoFolders(async ({ a, b, holder, held, open }) => {
    renameSync(a, b)
    symlinkSync(b, a)
    await assert.rejects(open(a).acquire(lasting({ name: 'other' }), call()), { effect: 'none' })
    assert.deepEqual(await holder.renew(held, call()), { kind: 'lost', reason: 'missing' })
    await hold(open(a), lasting({ name: 'other' }))
  })
})

test('a folder moved and linked from its old name is no loss: the log went with it', async () => {
  await twoFolders(async ({ a, holder, held, open }) => {
    renameSync(join(a, '..'), join(a, '..', '..', 'c'))
    symlinkSync('c', join(a, '..'))
    assert.equal((await holder.renew(held, call())).kind, 'renewed')
    assert.equal((await open(a).acquire(lasting(), call())).kind, 'held')
  })
})

test(
  'a single file mounted at another name is refused there; the folder mounted elsewhere is not',
  privileged,
  async () => {
    await twoFolders(async ({ a, b, holder, held, open, actor }) => {
      const other = open(b)
      const heldThere = await hold(other)
      execFileSync('mount', ['--bind', a, b])
      try {
        await refusesAll(open(b), held, /mount of its own.*mount the whole folder/)
        // Mounted over what another holder has open: a loss for that one, and no way on.
        assert.deepEqual(await other.renew(heldThere, call()), { kind: 'lost', reason: 'missing' })
        await refusesAll(other, held, /mount of its own/)
        assert.equal((await holder.renew(held, call())).kind, 'renewed')
      } finally {
        execFileSync('umount', [b])
      }
      execFileSync('mount', ['--bind', join(a, '..'), join(b, '..')])
      // SQLite closes no descriptor while another connection of its process has the same file open.
      const elsewhere = await actor({ path: b })
      try {
        assert.equal((await elsewhere.acquire(lasting())).kind, 'held')
      } finally {
        await elsewhere.kill()
        execFileSync('umount', [join(b, '..')])
      }
    })
  },
)

test(
  'a file mounted over itself, or over its log, while held: newcomers are refused, and never two hold',
  privileged,
  async () => {
    await twoFolders(async ({ a, b, holder, held, open }) => {
      execFileSync('mount', ['--bind', a, a])
      try {
        await refusesAll(open(a), held, /mount of its own/)
        assert.equal((await holder.renew(held, call())).kind, 'renewed')
      } finally {
        execFileSync('umount', [a])
      }
      writeFileSync(b, '')
      execFileSync('mount', ['--bind', b, `${a}-wal`])
      try {
        await refusesAll(open(a), held, /-wal is a mount of its own/)
        assert.deepEqual(await holder.renew(held, call()), { kind: 'lost', reason: 'missing' })
      } finally {
        execFileSync('umount', [`${a}-wal`])
      }
      assert.ok(existsSync(a) && statSync(b).size === 0)
    })
  },
)

test('a database whose path is no valid UTF-8 is refused: by its name as text we would make another file', async () => {
  await stage(async (folder) => {
    const database = openRaw(join(folder, '\ud800.db'))
    database.exec('CREATE TABLE app (id INTEGER)')
    const before = readdirSync(folder)
    assert.throws(() => sqliteStore(database as never), { name: 'TypeError', message: /valid UTF-8/ })
    database.close()
    assert.deepEqual(readdirSync(folder), before)
    // A link can lead there, too.
    const link = join(folder, 'link.db')
    execFileSync('sh', ['-c', 'touch "$(printf "\\377.db")" && ln -s "$(printf "\\377.db")" link.db'], { cwd: folder })
    const store = sqliteStore({ path: link })
    const names = readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('latin1'))
    await assert.rejects(store.acquire(lasting(), call()), { effect: 'none' })
    assert.deepEqual(
      readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('latin1')),
      names,
    )
    await store.close()
  })
})

test('a file that was switched to a WAL while we had it open: losing the log is a loss all the same', async () => {
  await stage(async (folder) => {
    const database = openRaw(`${folder}/app.db`)
    database.exec('CREATE TABLE of_an_application (id INTEGER)')
    const store = sqliteStore({ path: `${folder}/app.db` })
    await hold(store, lasting({ name: 'opens the file' }))
    database.exec('PRAGMA journal_mode = WAL')
    const held = await hold(store)
    assert.equal((await store.renew(held, call())).kind, 'renewed', 'the switch alone is no loss')
    rmSync(`${folder}/app.db-wal`)
    rmSync(`${folder}/app.db-shm`)
    assert.deepEqual(await store.renew(held, call()), { kind: 'lost', reason: 'missing' })
    await store.close()
    database.close()
  })
})
