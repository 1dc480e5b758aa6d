/** A process that takes one lease by the seam, says so, and is killed. `node redis-holder.js LIBRARY PORT CLAIM` */
import { argv, stdout } from 'node:process'
import type { Claim } from '../../src/store.js'
import { redisStore } from '../../src/stores/redis.js'
import { CLIENTS } from './servers/redis-clients.js'

const [, , name, port, text = ''] = argv
const claim = JSON.parse(text, (part, value) => (part === 'fenceFloor' ? BigInt(value) : value)) as Claim
const client = await CLIENTS.find((each) => each.name === name)?.open({ port: Number(port), connect: false })
if (!client) throw new Error(`no client library ${name}`)
const store = redisStore(client, { trustRestart: true })
const { kind } = await store.acquire(claim, { signal: new AbortController().signal })
stdout.write(`${kind}\n`)
setInterval(() => {}, 60_000)
