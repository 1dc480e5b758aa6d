import { systemEnvironment } from '../../environment.js'
import type { Holding } from '../../store.js'
import { has, type Parsed } from '../args.js'
import { EXIT } from '../exit.js'
import { targetOf } from '../target/connect.js'
import { holdingFacts, holdingJson, identity, takeIt } from '../text/holdings.js'
import { print, say } from '../text/output.js'
import { keyOf, withLeases } from './common.js'
import { intervalOf, watch } from './watching.js'

/** `holdfast show`: who holds a key. Exit 1 when nobody does. */
export async function show(parsed: Parsed): Promise<number> {
  const key = keyOf(parsed)
  const target = targetOf(parsed)
  const json = has(parsed, 'json')
  const intervalMs = intervalOf(parsed)
  const { clock } = systemEnvironment()
  const data = (holding: Holding | null) => holding && { ...holdingJson(holding, clock.wall()), store: target.place }
  return withLeases(target, async (leases, store) => {
    const facts = (holding: Holding | null) => holdingFacts(key, holding, target, store, clock.wall())
    const look = () => leases.inspect(key)
    if (intervalMs !== null) {
      const title = `holdfast show ${JSON.stringify(key)}`
      const same = (holding: Holding | null) => holding && identity(holding)
      return watch({ title, place: target.place, look, identity: same, text: facts, json: data }, intervalMs, json)
    }
    const holding = await look()
    if (json) await print(`${JSON.stringify(data(holding), null, 2)}\n`)
    else if (holding) await print(facts(holding))
    else say(`${JSON.stringify(key)} is free (asked ${target.place}); ${takeIt(key, target)}`)
    return holding ? EXIT.ok : EXIT.no
  })
}
