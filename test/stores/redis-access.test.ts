/** The same suite over TLS, and as a user with the least rights that suffice. */
import { after, test } from 'node:test'
import { conformanceOf, redisHarness } from '../support/redis-harness.js'
import { redisServer, withRedisTls } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'
import { LEAST_RIGHTS } from '../support/servers/redis-rights.js'

// What differs in older ones is not how they connect; `redis.test.ts` runs them all.
const newest = CLIENTS.filter(({ name }) => name === 'ioredis 6' || name === 'node-redis 6')

if (withRedisTls.skip) test('conformance on Redis over TLS', withRedisTls, () => {})
else {
  const server = await redisServer({ tls: true })
  after(() => server.end())
  await server.send('ACL', 'SETUSER', 'leases', 'on', '>secret', ...LEAST_RIGHTS)
  const tls = { port: server.tlsPort ?? 0, host: 'localhost', tls: { ca: server.ca ?? '' } }
  const user = { username: 'leases', password: 'secret' }
  const overTls = newest.map((library) => redisHarness(`${library.name} over TLS`, server, library, tls))
  const asUser = newest.map((library) => redisHarness(`${library.name} with least rights`, server, library, user))
  await conformanceOf(await Promise.all([...overTls, ...asUser]))
}
