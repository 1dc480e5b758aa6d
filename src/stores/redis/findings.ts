/** What follows from what a server says of itself, for people. */
import type { Environment } from '../../environment.js'
import { StoreUnsafeError } from '../../errors.js'
import type { Finding } from '../../store.js'
import type { Settings } from './options.js'

/** Uptime is counted in whole seconds at both ends. */
export const UPTIME_STEP_MS = 1_000
/** Wall clocks further apart than this make an uptime worthless: it is measured by the server's. */
export const CLOCKS_APART_MS = 5_000

export interface Facts {
  readonly place: string
  readonly info: ReadonlyMap<string, string>
  /** `null` where CONFIG is forbidden. */
  readonly config: ReadonlyMap<string, string> | null
  readonly answeredAt: number
  readonly serverTimeMs: number
  /** Its wall clock minus ours. */
  readonly apartMs: number
  readonly uptimeMs: number
  /** An earlier life left word that nothing since is forgotten, and the counter of fences: its leases are there again. */
  readonly survived: boolean
}

export function persistenceOf({ info, config }: Facts): string {
  if (info.get('aof_enabled') !== '1') return 'it keeps no log of its writes (appendonly no)'
  if (config === null) return 'its user may not ask how it saves (CONFIG GET)'
  return `its log may lack the last writes (appendfsync ${config.get('appendfsync')}, no-appendfsync-on-rewrite ${config.get('no-appendfsync-on-rewrite')})`
}

export function refusalOf({ info, place }: Facts, { allowEviction }: Settings): StoreUnsafeError | null {
  const role = info.get('role')
  if (role !== undefined && role !== 'master') {
    const master = info.has('master_host') ? ` of ${info.get('master_host')}:${info.get('master_port')}` : ''
    return new StoreUnsafeError(
      `${place} is a replica${master} (INFO: role:${role}), and only a master may grant; give the master's address`,
    )
  }
  if (info.get('cluster_enabled') === '1') {
    return new StoreUnsafeError(
      `${place} is a node of a Redis Cluster (INFO: cluster_enabled:1), which this store cannot use yet`,
    )
  }
  const policy = info.get('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction' && !allowEviction) {
    return new StoreUnsafeError(
      `${place} may evict leases before their time (INFO: maxmemory_policy:${policy}); set maxmemory-policy noeviction, ` +
        'use a server of its own for leases, or take the risk with allowEviction',
    )
  }
  return null
}

export function findingsOf(
  facts: Facts,
  durable: boolean,
  settings: Settings,
  readyAt: number,
  { clock }: Environment,
): Finding[] {
  const { info, place, apartMs, config } = facts
  const findings: Finding[] = []
  const add = (level: Finding['level'], message: string) => findings.push({ level, message: `${place}: ${message}` })
  const refusal = refusalOf(facts, settings)
  if (refusal) findings.push({ level: 'unsafe', message: refusal.message })
  if (!durable)
    add(
      'info',
      `${config === null ? 'CONFIG GET is forbidden, so it counts as volatile' : persistenceOf(facts)}: after each restart it grants nothing for ${settings.maxTtlMs + UPTIME_STEP_MS} ms`,
    )
  if (settings.trustRestart)
    add('warning', 'trustRestart is set: after a restart that lost leases, a holder from before may still be at work')
  else if (readyAt > clock.now()) add('warning', `not ready for another ${Math.ceil(readyAt - clock.now())} ms`)
  if (settings.allowEviction && info.get('maxmemory_policy') !== 'noeviction')
    add(
      'warning',
      `allowEviction is set, and its policy is ${info.get('maxmemory_policy')}: a lease may be evicted while it is held`,
    )
  if (!info.has('maxmemory_policy')) add('warning', 'its eviction policy cannot be seen')
  if (Math.abs(apartMs) > CLOCKS_APART_MS)
    add('warning', `its clock and ours are ${Math.round(Math.abs(apartMs))} ms apart; keep both with NTP`)
  if (Number(info.get('connected_slaves') ?? 0) > 0)
    add('warning', 'it has replicas: a failover to one may lose leases (use the fence)')
  return findings
}
