/** Hints of the Redis store: what goes wrong with them must not hang, leak or go unnoticed. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { redisStore } from '../../src/stores/redis.js'
import { type RedisServer, redisServer, withRedis } from '../support/servers/redis.js'
import { CLIENTS } from '../support/servers/redis-clients.js'

const never = () => new AbortController().signal
const waiterFor = (name: string) => ({ key: { namespace: 'n', name }, owner: 'o' })

describe('hints on Redis', withRedis, () => {
  let server: RedisServer
  before(async () => {
    server = await redisServer()
  })
  after(() => server.end())

  for (const library of CLIENTS) {
    test(`${library.name}: who waits again for a key whose channel is just being left hears of it`, async () => {
      const client = await library.open({ port: server.port, connect: false })
      const store = redisStore(client, { trustRestart: true })
      try {
        const watches = []
        for (let i = 0; i <= 64; i++)
          watches.push(await store.watch?.(waiterFor(`k${i}`), () => {}, { signal: never() }))
        // One more than stays open: the first is left.
        for (const watch of watches) watch?.close()
        let hints = 0
        await store.watch?.(waiterFor('k0'), () => hints++, { signal: never() })
        assert.equal(await server.send('PUBLISH', 'holdfast:lease:n:k0', ''), 1)
        await sleep(100)
        assert.equal(hints, 1)
      } finally {
        await store.close()
        library.close(client)
      }
    })

    test(`${library.name}: a store that is closed while it connects leaves no connection behind`, async () => {
      let open = 0
      const silent = createServer((socket) => {
        open++
        socket.on('error', () => {}).on('close', () => open--)
        socket.resume()
      })
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
      const { port } = silent.address() as { port: number }
      const client = await library.open({ port, connect: false, also: { lazyConnect: true } })
      const store = redisStore(client)
      const armed = store.watch?.(waiterFor('k'), () => {}, { signal: never() })
      const probed = store.probe({ signal: never() })
      await store.close()
      await assert.rejects(Promise.resolve(armed), /the store was closed/)
      await assert.rejects(probed, /the store was closed/)
      await sleep(150)
      assert.equal(open, 0)
      silent.close()
    })
  }

  test('in silence a watch ends with its signal, or by itself', async () => {
    const library = CLIENTS[0] as (typeof CLIENTS)[0]
    const client = await library.open({ port: server.port, connect: false })
    const store = redisStore(client, { trustRestart: true })
    try {
      await store.watch?.(waiterFor('a'), () => {}, { signal: never() })
      server.pause()
      const scope = new AbortController()
      const cancelled = assert.rejects(
        Promise.resolve(store.watch?.(waiterFor('b'), () => {}, { signal: scope.signal })),
        { effect: 'none' },
      )
      const alone = assert.rejects(
        Promise.resolve(store.watch?.(waiterFor('c'), () => {}, { signal: never() })),
        /no answer within 2000 ms/,
      )
      scope.abort()
      await cancelled
      await alone
    } finally {
      server.resume()
      await store.close()
      library.close(client)
    }
  })
})
