/** How the conformance suite reaches one Redis server through one client library. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { conformance, type Harness } from '../../src/conformance/index.js'
import { tcpProxy } from '../../src/faults/index.js'
import type { Claim } from '../../src/store.js'
import { redisStore } from '../../src/stores/redis.js'
import { rawLease } from './redis-raw.js'
import type { RedisServer } from './servers/redis.js'
import type { ClientLibrary, ClientOptions } from './servers/redis-clients.js'

type Check = readonly [name: string, run: () => Promise<void>]

/** Runs the whole suite for each, two at a time: they mostly wait for leases to end. */
export async function conformanceOf(harnesses: readonly Omit<Harness, 'test'>[]) {
  const suites = new Map<string, Check[]>()
  for (const harness of harnesses) {
    const checks: Check[] = []
    await conformance({ ...harness, test: (name, run) => checks.push([name, run]) })
    suites.set(harness.name, checks)
  }
  describe('conformance', { concurrency: 2 }, () => {
    for (const [name, checks] of suites) {
      describe(name, { concurrency: 1 }, () => {
        for (const [check, run] of checks) it(check, run)
      })
    }
  })
}

/** `how`: the user or the transport under test. The servers of tests are young, hence `trustRestart`. */
export async function redisHarness(
  name: string,
  server: RedisServer,
  library: ClientLibrary,
  how: Partial<ClientOptions> = {},
): Promise<Omit<Harness, 'test'>> {
  const options = { port: server.port, connect: false, ...how }
  const given = await library.open(options)
  const proxy = await tcpProxy({ port: options.port })
  const proxied = await library.open({ ...options, port: proxy.port })
  after(async () => {
    library.close(given)
    library.close(proxied)
    await proxy.close()
  })
  return {
    name,
    open: async () => redisStore(given, { trustRestart: true }),
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    truth: (key) => rawLease(server, key),
    kill: (claim) => killedHolder(library, server, claim),
    lostReply: async () => {
      const store = redisStore(proxied, { trustRestart: true })
      // Connected: what is lost before that was never asked.
      await store.probe({ signal: new AbortController().signal })
      return { store, lose: () => proxy.loseReplies(), heal: () => proxy.heal() }
    },
  }
}

async function killedHolder({ name }: ClientLibrary, { port }: RedisServer, claim: Claim): Promise<void> {
  const script = fileURLToPath(new URL('./redis-holder.js', import.meta.url))
  const text = JSON.stringify(claim, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  const child = spawn(process.execPath, [script, name, String(port), text], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  assert.equal(String(said), 'granted\n')
  child.kill('SIGKILL')
  await once(child, 'exit')
}
