import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, cpus } from 'node:os'
import { redisServer } from '../test/support/servers/redis.js'
import { CONTESTANTS } from './contestants/index.js'
import * as crash from './redis-crash.js'
import * as handOver from './redis-hand-over.js'
import * as holding from './redis-holding.js'
import * as uncontended from './redis-uncontended.js'
import { redisOptions, USAGE } from './support/redis-options.js'

export const summary = `all tables of one Redis server, which is what is run without a name: ${USAGE}`

export async function run(args: readonly string[]): Promise<void> {
  // Refuses wrong options, and installs the peers, before anything is printed.
  const { ids, isQuick } = redisOptions(args)
  console.log(await where())
  console.log('Only the ratios within one run mean anything.')
  if (isQuick)
    console.log('A glance: one short round of everything. These numbers say that the bench works, and no more.')
  console.log()
  for (const id of ids) console.log(`- ${CONTESTANTS[id].name}: ${CONTESTANTS[id].note}`)
  for (const part of [uncontended, handOver, crash, holding]) await part.run(args)
}

async function where(): Promise<string> {
  const server = await redisServer()
  const redis = /^redis_version:(\S+)/m.exec(`${await server.send('INFO', 'server')}`)?.[1]
  await server.end()
  const manifest = createRequire(import.meta.url).resolve('ioredis/package.json')
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  const cores = `${availableParallelism()} cores (${cpus()[0]?.model.trim()}) shared by server and clients`
  const today = new Date().toISOString().slice(0, 10)
  return `${today}: ${cores}, ${process.platform}, Node ${process.versions.node}, Redis ${redis}, ioredis ${version}.`
}
