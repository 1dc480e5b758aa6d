import { systemEnvironment } from '../../environment.js'
import type { Leases } from '../../leases.js'
import type { Holding } from '../../store.js'
import { has, type Parsed } from '../args.js'
import { EXIT, usageError } from '../exit.js'
import { targetOf } from '../target/connect.js'
import { holdingJson, holdingTable, identity } from '../text/holdings.js'
import { print, printable, say } from '../text/output.js'
import { terminalSize } from '../text/screen.js'
import { withLeases } from './common.js'
import { intervalOf, watch } from './watching.js'

/** `holdfast ls`: what is held, as a table or as one JSON array. */
export async function ls(parsed: Parsed): Promise<number> {
  const target = targetOf(parsed)
  const prefix = parsed.positionals[0] ?? ''
  const json = has(parsed, 'json')
  const intervalMs = intervalOf(parsed)
  if (has(parsed, 'keys') && (json || intervalMs !== null))
    throw usageError(`--keys does not go with --${json ? 'json' : 'watch'}; give one of them`)
  const { clock } = systemEnvironment()
  const begins = prefix && ` that begins with ${JSON.stringify(prefix)}`
  const nothing = `nothing${begins} is held in namespace ${JSON.stringify(target.namespace ?? 'default')} of ${target.place}`
  const data = (holdings: readonly Holding[]) => holdings.map((each) => holdingJson(each, clock.wall()))
  return withLeases(target, async (leases) => {
    if (intervalMs !== null) {
      return watch(
        {
          title: `holdfast ls${prefix && ` ${JSON.stringify(prefix)}`} in ${target.place}`,
          place: target.place,
          look: () => all(leases, prefix),
          identity: (holdings) => holdings.map(identity),
          text: (holdings, width) => (holdings.length > 0 ? holdingTable(holdings, width) : `${printable(nothing)}\n`),
          json: data,
        },
        intervalMs,
        json,
      )
    }
    const holdings = await all(leases, prefix)
    if (json) await print(`${JSON.stringify(data(holdings), null, 2)}\n`)
    else if (has(parsed, 'keys')) await print(holdings.map(({ key }) => `${printable(key)}\n`).join(''))
    else if (holdings.length > 0) await print(holdingTable(holdings, terminalSize()?.columns ?? null))
    else say(nothing)
    return EXIT.ok
  })
}

async function all(leases: Leases, prefix: string): Promise<Holding[]> {
  const holdings: Holding[] = []
  for await (const holding of leases.list(prefix)) holdings.push(holding)
  return holdings
}
