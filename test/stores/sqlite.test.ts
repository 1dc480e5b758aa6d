import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { conformance } from '../../src/conformance/index.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { Actor } from '../support/sqlite-actors.js'
import { rawLease } from '../support/sqlite-raw.js'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
const path = join(folder, 'leases.db')
after(() => rmSync(folder, { recursive: true, force: true }))

await conformance({
  name: 'sqlite',
  test,
  open: async () => sqliteStore({ path }),
  truth: async (key) => rawLease(path, key),
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  kill: async (claim) => {
    const actor = await new Actor(path).ready()
    await actor.acquire(claim)
    await actor.kill()
  },
  deathSeenWithinMs: 100,
})
