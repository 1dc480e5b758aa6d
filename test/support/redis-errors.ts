/** What an acquisition is refused with, and that it tells nobody's secrets. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { createLeases, type LeaseError } from '../../src/index.js'
import { type RedisOptions, redisStore } from '../../src/stores/redis.js'
import type { ClientLibrary, ClientOptions, TestClient } from './servers/redis-clients.js'

/** In every password that a test gives. */
export const SECRET = 'topsecret'

/** `wait`: how long the acquisition may last, in ms. The application's own client is not connected. */
export async function refusal(
  library: ClientLibrary,
  options: ClientOptions,
  { waitMs = 0, ...store }: RedisOptions & { readonly waitMs?: number } = {},
): Promise<LeaseError> {
  const lazy = library.name.startsWith('ioredis') ? { lazyConnect: true } : {}
  const client = await library.open({ ...options, connect: false, also: lazy })
  try {
    return await refusalOf(client, { waitMs, ...store })
  } finally {
    library.close(client)
  }
}

async function refusalOf(client: TestClient, { waitMs, ...store }: RedisOptions & { readonly waitMs: number }) {
  const told: unknown[] = []
  const leases = createLeases(redisStore(client, { trustRestart: true, ...store }), {
    ttlMs: 1200,
    observe: (event) => void told.push(event),
  })
  try {
    const lease = await leases.acquire('k', { waitMs })
    throw new assert.AssertionError({ message: `granted: ${lease.fence}` })
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error
    for (const each of [error, ...told]) {
      const shown = `${inspect(each, { depth: 20, showHidden: true })}${JSON.stringify(each)}`
      assert.ok(!shown.includes(SECRET), `it shows the password: ${shown}`)
    }
    return error as LeaseError
  } finally {
    await leases.close().catch(() => {})
  }
}
