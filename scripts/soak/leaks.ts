import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { complaints, growth } from '../../test/support/leaks.js'

export const summary =
  '10,000 cycles, 1,000 losses, 100,000 keys on memory and SQLite leave nothing behind (about 5 min)'

const LOAD = { cycles: 10_000, lost: 1000, keys: 100_000, refused: 10_000 }

export async function run(): Promise<void> {
  if (!globalThis.gc) {
    setFlagsFromString('--expose-gc')
    globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
  }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-leaks-'))
  const say = (line: string) => console.log(line)
  try {
    console.log('memory')
    const inMemory = complaints(await growth(memoryStore(), LOAD, say))
    console.log('SQLite')
    const inSqlite = complaints(await growth(sqliteStore({ path: join(folder, 'leases.db') }), LOAD, say))
    if (inMemory.length + inSqlite.length > 0) throw new Error([...inMemory, ...inSqlite].join('; '))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
