import type { Environment } from '../../environment.js'
import type { Finding, Probe, StoreTraits } from '../../store.js'
import type { Session } from './session.js'

/** The id is in the file: a copy of it has the same, and counts as the same server, which errs on the safe side. */
export function probe(session: Session, traits: StoreTraits, environment: Environment): Probe {
  const { fileId } = session.rows.meta()
  return {
    id: `sqlite ${fileId}`,
    incarnation: `${fileId} ${session.identity.main}`,
    serverTimeMs: environment.clock.wall(),
    version: session.sqliteVersion,
    traits,
    findings: findings(session, environment),
  }
}

/** There is no file, and asking about it makes none. */
export function absentProbe(path: string, traits: StoreTraits, environment: Environment): Probe {
  const message = `there is no lease file at ${path} yet; the first acquisition creates it`
  const id = `sqlite, no file yet: ${path}`
  const serverTimeMs = environment.clock.wall()
  return { id, incarnation: id, serverTimeMs, traits, findings: [{ level: 'info', message }] }
}

function findings({ identity: { mode }, journalMode, path }: Session, environment: Environment): Finding[] {
  const found: Finding[] = []
  const octal = mode.toString(8).padStart(4, '0')
  if (mode & 0o022) {
    found.push({
      level: 'warning',
      message: `${path} has mode ${octal}: others can free and take leases; unless they shall, chmod 600`,
    })
  } else if (mode & 0o044) {
    found.push({
      level: 'info',
      message: `${path} has mode ${octal}: others can read who holds what; unless they shall, chmod 600`,
    })
  }
  if (journalMode !== 'wal') {
    found.push({
      level: 'info',
      message: `${path} is in journal mode ${journalMode}: safe, but slower than wal, and readers make writers wait`,
    })
  }
  if (environment.host.identity === null) {
    found.push({
      level: 'info',
      message:
        'this system has no clock that processes can share: what a dead process held is taken over only after watching it for its whole TTL',
    })
  }
  return found
}
