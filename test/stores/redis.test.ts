/** The whole suite through each client library. Skipped visibly where there is no server. */
import { after, test } from 'node:test'
import { conformanceOf, redisHarness } from '../support/redis-harness.js'
import { redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

if (withRedis.skip) test('conformance on Redis', withRedis, () => {})
else {
  const server = await redisServer()
  after(() => server.end())
  await conformanceOf(await Promise.all(CLIENTS.map((library) => redisHarness(library.name, server, library))))
}
