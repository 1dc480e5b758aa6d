import type { Holding } from '../../store.js'
import { has, type Parsed } from '../args.js'
import { targetOf } from '../connect.js'
import { EXIT } from '../exit.js'
import { print, say } from '../output.js'
import { HOLDING_HEADS, holdingJson, holdingRow, table } from '../table.js'
import { withLeases } from './common.js'

/** `holdfast ls`: what is held, as a table or as one JSON array. */
export async function ls(parsed: Parsed): Promise<number> {
  const target = targetOf(parsed)
  const prefix = parsed.positionals[0] ?? ''
  const holdings: Holding[] = []
  await withLeases(target, async (leases) => {
    for await (const holding of leases.list(prefix)) holdings.push(holding)
  })
  if (has(parsed, 'json')) await print(`${JSON.stringify(holdings.map(holdingJson), null, 2)}\n`)
  else if (holdings.length > 0) await print(table(HOLDING_HEADS, holdings.map(holdingRow)))
  else
    say(
      `nothing${prefix && ` that begins with ${JSON.stringify(prefix)}`} is held in namespace ${JSON.stringify(target.namespace ?? 'default')} of ${target.place}`,
    )
  return EXIT.ok
}
