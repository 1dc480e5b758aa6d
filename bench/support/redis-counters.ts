import type { RedisServer } from '../../test/support/servers/redis.js'

/** How often the server has executed each command so far, those within scripts too. */
export async function commandCounts(server: RedisServer): Promise<Map<string, number>> {
  const text = `${await server.send('INFO', 'commandstats')}`
  return new Map(
    [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)]),
  )
}

/** What was executed in between: all of it, and the part that came over a connection as one of these commands. */
export function executed(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  sends: readonly string[],
): { readonly sent: number; readonly all: number } {
  let sent = 0
  let all = 0
  for (const [name, calls] of after) {
    const times = calls - (before.get(name) ?? 0)
    // Our own question.
    if (name === 'info') continue
    all += times
    if (sends.includes(name)) sent += times
  }
  return { sent, all }
}

export async function serverMemory(server: RedisServer): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(`${await server.send('INFO', 'memory')}`)?.[1])
}
