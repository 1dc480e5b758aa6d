import { has, type Parsed } from '../args.js'
import { suggest, targetOf } from '../connect.js'
import { formatDuration } from '../duration.js'
import { EXIT } from '../exit.js'
import { print, printable, say } from '../output.js'
import { holdingJson } from '../table.js'
import { keyOf, withLeases } from './common.js'

/** `holdfast show`: who holds a key. Exit 1 when nobody does. */
export async function show(parsed: Parsed): Promise<number> {
  const key = keyOf(parsed)
  const target = targetOf(parsed)
  const holding = await withLeases(target, (leases) => leases.inspect(key))
  if (has(parsed, 'json')) await print(`${JSON.stringify(holding && holdingJson(holding), null, 2)}\n`)
  else if (!holding) say(`${JSON.stringify(key)} is free (asked ${target.place})`)
  else {
    const rows: [string, string | undefined][] = [
      ['key', holding.key],
      ['state', STATES[holding.state]],
      ['holder', holding.label],
      ['held for', holding.heldForMs === undefined ? undefined : formatDuration(holding.heldForMs)],
      ['ttl left', holding.remainingMs === undefined ? undefined : formatDuration(holding.remainingMs)],
      ['fence', String(holding.fence)],
      ['waiting', holding.waiters?.join(', ')],
      ['store', target.place],
      ['to end it', suggest(target, 'revoke', key)],
    ]
    const lines = rows.flatMap(([name, value]) =>
      value === undefined ? [] : [`${name.padEnd(10)}${printable(value)}\n`],
    )
    await print(lines.join(''))
  }
  return holding ? EXIT.ok : EXIT.no
}

const STATES = {
  held: 'held',
  revoked: 'asked back: its holder is told, and cannot renew it',
  kept: 'released, but kept taken for a while (--min-hold or --lock-delay)',
}
