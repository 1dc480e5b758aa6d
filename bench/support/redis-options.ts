import { parseArgs } from 'node:util'
import { CONTESTANTS, type Id } from '../contestants/index.js'
import { installPeers } from './peers.js'

export interface RedisOptions {
  /** A glance: one short round of everything. Its numbers say that the bench works, and no more. */
  readonly isQuick: boolean
  readonly ids: readonly Id[]
  readonly rounds: number | undefined
  readonly inFlight: readonly number[]
  readonly waiters: readonly number[]
  readonly leases: readonly number[]
}

export const USAGE =
  '[--quick] [--only raw,holdfast,…] [--rounds N] [--conc 1,16,256,2048] [--waiters 8,64] [--leases 1000,10000]'

/** The same for every part, so that `npm run bench` can hand them on; each takes what concerns it. */
export function redisOptions(args: readonly string[]): RedisOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: Object.keys(CONTESTANTS).join(',') },
      rounds: { type: 'string' },
      conc: { type: 'string', default: '1,16,256,2048' },
      waiters: { type: 'string', default: '8,64' },
      leases: { type: 'string' },
    },
  })
  const ids = values.only.split(',').map((id) => {
    if (id in CONTESTANTS) return id as Id
    throw new Error(`--only must name some of ${Object.keys(CONTESTANTS).join(', ')}, but got ${JSON.stringify(id)}`)
  })
  if (ids.some((id) => CONTESTANTS[id].isPeer)) installPeers()
  return {
    isQuick: values.quick,
    ids,
    rounds: values.rounds === undefined ? undefined : count('--rounds', values.rounds),
    inFlight: counts('--conc', values.conc),
    waiters: counts('--waiters', values.waiters),
    leases: counts('--leases', values.leases ?? (values.quick ? '1000' : '1000,10000')),
  }
}

const counts = (option: string, text: string): number[] => text.split(',').map((each) => count(option, each))

function count(option: string, text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new Error(`${option} must be a whole number above 0, but got ${JSON.stringify(text)}`)
}
