import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync,
  truncateSync, writeFileSync,
} from 'node:fs' // biome-ignore format: a list
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { StoreError, StoreUnsafeError } from '../../src/errors.js'
import { isNetwork, mountOf } from '../../src/stores/sqlite/mounts.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { stage } from '../support/sqlite-actors.js'
import { call, hold, lasting } from '../support/sqlite-holds.js'
import { openToAll, privileged, withSshfs } from '../support/sqlite-hosts.js'
import { openRaw, withRaw } from '../support/sqlite-raw.js'

/** One line, with the path, and of the right kind. */
async function refuses(asked: Promise<unknown>, path: string, pattern: RegExp, kind: 'none' | 'unsafe'): Promise<void> {
  await assert.rejects(asked, (error: Error) => {
    assert.ok(error.message.includes(path), error.message)
    assert.match(error.message, pattern)
    assert.ok(!error.message.includes('\n'))
    if (kind === 'unsafe') assert.ok(error instanceof StoreUnsafeError, error.name)
    else assert.ok(error instanceof StoreError && error.effect === 'none', `${error.name}: ${error.message}`)
    return true
  })
}

const replacements: [string, (path: string) => unknown][] = [
  ['deleted', (path) => rmSync(path)],
  ['deleted with its companions', (path) => ['', '-wal', '-shm'].map((end) => rmSync(path + end))],
  ['moved away', (path) => renameSync(path, `${path}.old`)],
  ['replaced by a copy of itself', (path) => [copyFileSync(path, `${path}.new`), renameSync(`${path}.new`, path)]],
  ['robbed of its log', (path) => rmSync(`${path}-wal`)],
  ['robbed of its shared memory', (path) => rmSync(`${path}-shm`)],
]
for (const [what, replace] of replacements) {
  test(`the file is ${what} while held: the holder is told at once, and fences still grow`, async () => {
    await stage(async (folder, actor) => {
      const path = join(folder, 'leases.db')
      const [holder, waiter, other] = [sqliteStore({ path }), sqliteStore({ path }), await actor()]
      const held = await hold(holder)
      let hints = 0
      const watch = await holder.watch?.(held, () => hints++, call())
      assert.equal((await waiter.acquire(lasting(), call())).kind, 'held')
      replace(path)
      await sleep(300)
      assert.equal(hints, 1, 'the keeper is told, so that it asks')
      assert.deepEqual(await holder.renew(held, call()), { kind: 'lost', reason: 'missing' })
      const taken = await hold(waiter, lasting({ name: 'next' }))
      assert.ok(taken.fence > held.fence)
      // All go on in one file.
      assert.equal((await other.acquire(lasting({ name: 'next' }))).kind, 'held')
      assert.equal((await holder.acquire(lasting({ name: 'next' }), call())).kind, 'held')
      assert.equal((await holder.release(taken, call())).kind, 'released')
      watch?.close()
      await Promise.all([holder.close(), waiter.close()])
    })
  })
}

test('a symbolic link that is turned to another file is another file', async () => {
  await stage(async (folder) => {
    const link = join(folder, 'link')
    for (const name of ['a', 'b']) writeFileSync(join(folder, name), '')
    symlinkSync(join(folder, 'a'), link)
    const store = sqliteStore({ path: link })
    const held = await hold(store)
    rmSync(link)
    symlinkSync(join(folder, 'b'), link)
    assert.deepEqual(await store.renew(held, call()), { kind: 'lost', reason: 'missing' })
    await store.close()
  })
})

test('a new file and its companions are for their owner only; a file for others is reported', async () => {
  await stage(async (folder) => {
    const path = join(folder, 'leases.db')
    const before = process.umask(0)
    const store = sqliteStore({ path })
    try {
      await hold(store)
    } finally {
      process.umask(before)
    }
    for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)
    assert.deepEqual((await store.probe(call())).findings, [])
    await store.close()
    for (const [mode, level] of [
      [0o644, 'info'],
      [0o666, 'warning'],
    ] as const) {
      chmodSync(path, mode)
      const again = sqliteStore({ path })
      assert.deepEqual(
        (await again.probe(call())).findings.map((finding) => finding.level),
        [level],
      )
      await again.close()
    }
  })
})

test('what cannot be a lease file is refused in one line, and works once the cause is gone', async () => {
  await stage(async (folder) => {
    const path = join(folder, 'sub folder', 'leases.db')
    const store = sqliteStore({ path })
    const ask = () => store.acquire(lasting({ ttlMs: 50 }), call())
    await refuses(ask(), path.slice(0, -10), /create it: mkdir -p '/, 'none')
    mkdirSync(join(folder, 'sub folder'))
    mkdirSync(path)
    await refuses(ask(), path, /is a folder/, 'none')
    rmSync(path, { recursive: true })
    writeFileSync(path, 'This is a text of some length, and no database at all. '.repeat(100))
    await refuses(ask(), path, /is not a SQLite database/, 'unsafe')
    assert.match(readFileSync(path, 'utf8'), /^This is a text/)
    rmSync(path)
    withRaw(path, (raw) =>
      raw.exec('CREATE TABLE holdfast_meta (id INTEGER, schema INTEGER); INSERT INTO holdfast_meta VALUES (1, 99)'),
    )
    await refuses(ask(), path, /schema 99.*update/, 'unsafe')
    rmSync(path)
    withRaw(path, (raw) =>
      raw.exec('CREATE TABLE holdfast_leases (mine INTEGER); INSERT INTO holdfast_leases VALUES (7)'),
    )
    await refuses(ask(), path, /not those of this store/, 'unsafe')
    assert.deepEqual(
      withRaw(path, (raw) => raw.prepare('SELECT mine FROM holdfast_leases').get()),
      { mine: 7 },
    )
    rmSync(path)
    assert.equal((await ask()).kind, 'granted')
    await store.close()
    const inFile = sqliteStore({ path: join(path, 'leases.db') })
    await refuses(inFile.acquire(lasting(), call()), path, /there is no folder/, 'none')
    await inFile.close()
  })
})

test('a newer release takes the file while we have it open: we write no more', async () => {
  await stage(async (folder) => {
    const path = join(folder, 'leases.db')
    const store = sqliteStore({ path })
    const held = await hold(store)
    withRaw(path, (raw) => raw.exec('UPDATE holdfast_meta SET schema = 2'))
    await refuses(store.renew(held, call()), path, /schema 2/, 'unsafe')
    await refuses(store.acquire(lasting({ name: 'other' }), call()), path, /schema 2/, 'unsafe')
    await store.close()
  })
})

test('an empty file is made ours, and the tables of an application are left alone, its journal mode too', async () => {
  await stage(async (folder) => {
    const path = join(folder, 'app.db')
    writeFileSync(path, '')
    const first = sqliteStore({ path })
    await hold(first)
    await first.close()
    rmSync(path)
    withRaw(path, (raw) => raw.exec('CREATE TABLE app (id INTEGER); INSERT INTO app VALUES (1)'))
    const store = sqliteStore({ path })
    const held = await hold(store)
    assert.match((await store.probe(call())).findings.at(-1)?.message ?? '', /journal mode delete/)
    assert.equal((await store.renew(held, call())).kind, 'renewed')
    await store.close()
    assert.deepEqual(
      withRaw(path, (raw) => [raw.prepare('SELECT id FROM app').get(), raw.prepare('PRAGMA journal_mode').get()]),
      [{ id: 1 }, { journal_mode: 'delete' }],
    )
  })
})

test('a truncated or damaged file is refused, and a clean one takes its place', async () => {
  await stage(async (folder) => {
    const path = join(folder, 'leases.db')
    const store = sqliteStore({ path })
    for (let i = 0; i < 300; i++) await hold(store, lasting({ name: `a name of some length ${i}` }))
    await store.close()
    const whole = readFileSync(path)
    for (const damage of [
      () => truncateSync(path, 5_000),
      () => writeFileSync(path, Buffer.concat([whole.subarray(0, 4_096), Buffer.alloc(whole.length - 4_096, 0x5a)])),
    ]) {
      damage()
      const damaged = sqliteStore({ path })
      await refuses(damaged.acquire(lasting({ name: 'a name of some length 7' }), call()), path, /is damaged/, 'unsafe')
      writeFileSync(path, whole)
      assert.equal((await damaged.acquire(lasting({ name: 'a name of some length 7' }), call())).kind, 'held')
      await damaged.close()
    }
  })
})

test('a file truncated while held: never two holders, and never a smaller fence', async () => {
  for (const checkpoint of [true, false]) {
    await stage(async (folder, actor) => {
      const path = join(folder, 'leases.db')
      const holder = await actor()
      const held = lasting()
      const grant = await holder.acquire(held)
      assert.ok(grant.kind === 'granted')
      if (checkpoint) withRaw(path, (raw) => raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
      truncateSync(path, 0)
      for (let i = 0; i < 3; i++) {
        const contender = await actor()
        const taken = await contender.acquire(lasting()).catch((error: Error) => error)
        const renewal = await holder.renew({ ...held, fence: grant.fence }).catch((error: Error) => error)
        if (!('kind' in taken) || taken.kind !== 'granted') continue
        assert.ok(taken.fence > grant.fence)
        assert.ok(!('kind' in renewal) || renewal.kind === 'lost', 'two hold the key')
      }
    })
  }
})

test('a full disk: no verdict, nothing lost, and it works again once there is room', privileged, async () => {
  await stage(async (folder) => {
    const disk = join(folder, 'disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', disk])
    try {
      const path = join(disk, 'leases.db')
      const store = sqliteStore({ path })
      const held = await hold(store)
      await hold(store, lasting({ name: 'second' }))
      const filler = join(disk, 'filler')
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k', 'count=1000'])
      const answers: string[] = []
      // The log has some room of its own, so a few calls may yet succeed.
      for (let i = 0; i < 200 && !answers.includes('StoreError'); i++) {
        const answer = await store.acquire(lasting({ name: `more ${i}` }), call()).then(
          ({ kind }) => kind,
          (error: Error) => error.name,
        )
        answers.push(answer)
      }
      await refuses(store.acquire(lasting({ name: 'one more' }), call()), path, /no space left/, 'none')
      assert.equal((await store.acquire(lasting({ name: 'second' }), call())).kind, 'held', 'reading goes on')
      const renewal = await store.renew(held, call()).then(
        ({ kind }) => kind,
        (error: Error) => error.name,
      )
      assert.ok(['renewed', 'StoreError'].includes(renewal), renewal)
      rmSync(filler)
      assert.equal((await store.renew(held, call())).kind, 'renewed')
      assert.equal((await store.release(held, call())).kind, 'released')
      assert.deepEqual(
        withRaw(path, (raw) => raw.prepare('PRAGMA integrity_check').get()),
        { integrity_check: 'ok' },
      )
      await store.close()
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k', 'count=1000'])
      const fresh = sqliteStore({ path: join(disk, 'fresh.db') })
      await refuses(fresh.acquire(lasting(), call()), disk, /no space left/, 'none')
      rmSync(filler)
      assert.equal((await fresh.acquire(lasting(), call())).kind, 'granted')
      await fresh.close()
    } finally {
      execFileSync('umount', [disk])
    }
  })
})

test('a read-only mount: no verdict while it is, and the same store works again', privileged, async () => {
  await stage(async (folder) => {
    const disk = join(folder, 'disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
    try {
      const path = join(disk, 'leases.db')
      const store = sqliteStore({ path })
      const held = await hold(store)
      await store.close()
      execFileSync('mount', ['-o', 'remount,ro', disk])
      const reader = sqliteStore({ path })
      await refuses(reader.renew(held, call()), path, /mounted read-only/, 'none')
      await refuses(sqliteStore({ path: join(disk, 'new.db') }).acquire(lasting(), call()), disk, /read-only/, 'none')
      execFileSync('mount', ['-o', 'remount,rw', disk])
      assert.equal((await reader.renew(held, call())).kind, 'renewed')
      await reader.close()
    } finally {
      execFileSync('umount', [disk])
    }
  })
})

test('another user: refused in one line without rights, welcome with them', privileged, async () => {
  await stage(async (folder, actor) => {
    const path = join(folder, 'leases.db')
    const store = sqliteStore({ path })
    const held = await hold(store)
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    const stranger = await actor({ through: nobody })
    await assert.rejects(stranger.acquire(lasting()), { effect: 'none', message: /no permission for/ })
    chmodSync(folder, 0o755)
    await assert.rejects(stranger.acquire(lasting()), { effect: 'none', message: /no permission to read and write/ })
    openToAll(folder)
    assert.equal((await stranger.acquire(lasting())).kind, 'held')
    chmodSync(folder, 0o700)
    // It can no longer look at the file: no verdict, and not a loss.
    await assert.rejects(stranger.renew(held), { effect: 'none', message: /no permission/ })
    chmodSync(folder, 0o777)
    assert.equal((await stranger.renew(held)).kind, 'renewed')
    await store.close()
  })
})

const MOUNTS = `
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:40 / /home rw - nfs4 server:/home rw
41 40 0:41 / /home/local rw - xfs /dev/sdb rw
42 27 0:42 / /mnt/with\\040space rw - cifs //server/share rw
43 27 0:43 / /over rw - ext4 /dev/sdc rw
44 43 0:44 / /over rw - fuse.sshfs host: rw
`

test('the mount of a path is the longest that covers it, and of several at one point the last', () => {
  const types = {
    '/a.db': 'ext4',
    '/home/me/a.db': 'nfs4',
    '/home/local/a.db': 'xfs',
    '/homestead/a.db': 'ext4',
    '/mnt/with space/a.db': 'cifs',
    '/over/a.db': 'fuse.sshfs',
  }
  for (const [path, type] of Object.entries(types)) assert.equal(mountOf(path, MOUNTS)?.type, type, path)
  assert.equal(mountOf('/a', ''), null)
  const networks = [
    'nfs',
    'nfs4',
    'cifs',
    'smb3',
    '9p',
    'virtiofs',
    'ceph',
    'glusterfs',
    'lustre',
    'afs',
    'fuse.sshfs',
    'fuse.glusterfs',
    'fuse.rclone',
  ]
  for (const type of networks) assert.ok(isNetwork(type), type)
  for (const type of ['ext4', 'xfs', 'btrfs', 'tmpfs', 'overlay', 'zfs', 'fuse.gocryptfs', 'fuseblk', 'f2fs', 'apfs'])
    assert.ok(!isNetwork(type), type)
})

test('a network file system is refused: a real one', withSshfs, async () => {
  await stage(async (folder) => {
    const [far, near] = [join(folder, 'far'), join(folder, 'near')]
    mkdirSync(far)
    mkdirSync(near)
    withRaw(join(far, 'there.db'), (raw) => raw.exec('CREATE TABLE a (b)'))
    // No ssh: sshfs talks to the server program through a pipe.
    const server = `#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n`
    writeFileSync(join(folder, 'ssh'), server, { mode: 0o755 })
    execFileSync('sshfs', ['-o', `ssh_command=${join(folder, 'ssh')}`, `nowhere:${far}`, near])
    try {
      for (const name of ['there.db', 'new.db']) {
        const store = sqliteStore({ path: join(near, name) })
        await refuses(store.acquire(lasting(), call()), near, /network file system \(fuse\.sshfs\)/, 'unsafe')
        await store.close()
      }
      assert.ok(!existsSync(join(far, 'new.db')), 'nothing was created')
    } finally {
      execFileSync('fusermount3', ['-u', near])
    }
  })
})

test("a caller's database object: its file, a connection of our own, and the caller's is neither used nor closed", async () => {
  await stage(async (folder) => {
    const path = join(folder, 'app.db')
    const database = openRaw(path)
    database.exec('CREATE TABLE app (id INTEGER)')
    const store = sqliteStore(database as never)
    assert.equal(store.location, path)
    // In the middle of a transaction of the caller's, which then goes on.
    database.exec('BEGIN; INSERT INTO app VALUES (1)')
    assert.equal((await store.acquire(lasting({ ttlMs: 100 }), call())).kind, 'not-ready')
    database.exec('COMMIT')
    const held = await hold(store)
    assert.equal((await store.renew(held, call())).kind, 'renewed')
    await store.close()
    assert.deepEqual(database.prepare('SELECT id FROM app').all(), [{ id: 1 }])
    assert.deepEqual(database.prepare('PRAGMA journal_mode').get(), { journal_mode: 'delete' })
    database.close()
    const inMemory = openRaw(':memory:')
    assert.throws(() => sqliteStore(inMemory as never), { name: 'TypeError', message: /memoryStore/ })
    inMemory.close()
    assert.throws(() => sqliteStore(inMemory as never), { name: 'TypeError' })
  })
})

test('options are checked on entry', () => {
  const wrong: [unknown, RegExp][] = [
    [undefined, /expected/], [null, /expected/], ['leases.db', /expected \{ path \}/], [{}, /path: expected/], [{ path: '' }, /path: expected/],
    [{ path: 7 }, /path: expected/], [{ path: 'a\0b' }, /path: expected/], [{ path: ':memory:' }, /memoryStore/], [{ path: 'file:a.db' }, /path: expected/], [{ path: '\ud800' }, /path: expected/], [{ path: 'a\udc00/b.db' }, /path: expected/],
    [{ path: 'a.db', ttlMs: 1 }, /unknown option "ttlMs"/],
  ] // biome-ignore format: a table
  for (const [options, message] of wrong)
    assert.throws(() => sqliteStore(options as never), { name: 'TypeError', message })
})

test('a missing driver is said in one line with its cause, at the first call and not before', async (t) => {
  if (typeof process.getBuiltinModule === 'function' && process.getBuiltinModule('node:sqlite'))
    return t.skip('this Node has a driver built in')
  await stage(async (folder) => {
    // Where nothing is installed.
    cpSync(fileURLToPath(new URL('../../src', import.meta.url)), join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(
      join(folder, 'try.js'),
      `import { sqliteStore } from './src/stores/sqlite.js'
       const store = sqliteStore({ path: 'leases.db' })
       await store.inspect({ namespace: 'n', name: 'k' }, { signal: new AbortController().signal }).catch((error) => {
         console.log(JSON.stringify([error.effect, error.message, error.cause?.code]))
       })`,
    )
    const { stdout } = spawnSync(process.execPath, ['try.js'], { cwd: folder, encoding: 'utf8' })
    const [effect, message, code] = JSON.parse(stdout) as string[]
    assert.equal(effect, 'none')
    assert.match(message ?? '', /npm install better-sqlite3/)
    assert.equal(code, 'MODULE_NOT_FOUND')
  })
})

test('fences: one counter for the file, floors honoured and kept, and an end that is said', async () => {
  await stage(async (folder) => {
    const path = join(folder, 'leases.db')
    const store = sqliteStore({ path })
    const first = await hold(store, lasting({ name: 'a' }))
    const floor = first.fence + 10n ** 15n
    assert.equal((await hold(store, lasting({ name: 'b', fenceFloor: floor }))).fence, floor)
    assert.equal((await hold(store, lasting({ name: 'c' }))).fence, floor + 1n)
    const raised = floor + 500n
    assert.deepEqual(await store.renew({ ...first, fenceFloor: raised }, call()), {
      kind: 'renewed',
      fence: first.fence,
      ttlMs: 10_000,
    })
    await store.close()
    const again = sqliteStore({ path })
    assert.equal((await hold(again, lasting({ name: 'd' }))).fence, raised + 1n)
    const most = 2n ** 63n - 1n
    assert.equal((await hold(again, lasting({ name: 'e', fenceFloor: most }))).fence, most)
    for (const fenceFloor of [0n, most + 1n]) {
      await assert.rejects(again.acquire(lasting({ name: 'f', fenceFloor }), call()), {
        effect: 'none',
        message: /counts no further/,
      })
    }
    assert.equal((await again.renew({ ...first, fenceFloor: most }, call())).kind, 'renewed')
    await again.close()
  })
})

test('hostile keys: every well-formed string is a key of its own, and comes back as it went in', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'leases.db') })
    const names = [
      'a',
      'a\0',
      'a\0b',
      '\0',
      'A',
      'a ',
      "'; DROP TABLE holdfast_leases; --",
      '%',
      '_',
      '{}',
      ':',
      '/',
      '..',
      '😀',
      '\ufeff',
      'é',
      'e\u0301',
      '漢'.repeat(341),
      'x'.repeat(1_024),
    ]
    for (const name of names) await hold(store, lasting({ name, label: name }))
    for (const name of names) {
      assert.equal((await store.acquire(lasting({ name }), call())).kind, 'held')
      const holding = await store.inspect({ namespace: 'test', name }, call())
      assert.deepEqual([holding?.key, holding?.label], [name, name])
    }
    const listed: string[] = []
    for await (const holding of store.list?.('test', '', call()) ?? []) listed.push(holding.key)
    assert.deepEqual(
      listed,
      [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    const some: string[] = []
    for await (const holding of store.list?.('test', 'a\0', call()) ?? []) some.push(holding.key)
    assert.deepEqual(some, ['a\0', 'a\0b'])
    await store.close()
  })
})

test('a closed store refuses, and a list may be longer than a page', async () => {
  await stage(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'leases.db') })
    for (let i = 0; i < 250; i++) await hold(store, lasting({ name: `n${String(i).padStart(3, '0')}` }))
    const listed: string[] = []
    for await (const holding of store.list?.('test', 'n', call()) ?? []) listed.push(holding.key)
    assert.deepEqual([listed.length, listed[0], listed[100], listed[249]], [250, 'n000', 'n100', 'n249'])
    await store.close()
    await store.close()
    await assert.rejects(store.acquire(lasting(), call()), { effect: 'none', message: /is closed/ })
  })
})
