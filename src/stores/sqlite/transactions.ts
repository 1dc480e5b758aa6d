/** What is decided and written within one write transaction. All of it happens, or nothing. */
import { StoreError } from '../../errors.js'
import type { AcquireOutcome, Claim, HeldRef, Key, ReleaseOutcome, RenewOutcome, RevokeOutcome } from '../../store.js'
import type { Transaction } from './lease-file.js'
import type { Look, Observer } from './observer.js'
import { MAX_FENCE, nextFence, sameVersion } from './verdict.js'

/** The version of a row: see `LeaseRow`. */
export interface Version {
  readonly fence: bigint
  readonly renewals: number
}

/**
 * `ended`: the version whose holder was seen dead before the transaction began. Another version is another story, so
 * that a contender who was paused in between takes nothing from anyone.
 */
export function acquire(
  { rows, counter }: Transaction,
  observer: Observer,
  claim: Claim,
  ended: Version | null,
  wallMs: number,
): AcquireOutcome {
  const { key, owner, label = null, ttlMs } = claim
  const look = observer.look(rows, key)
  const term = Math.max(ttlMs + claim.lockDelayMs, claim.minHoldMs)
  const free = !look || look.verdict.expired || sameVersion(ended, look.row)
  if (!free && !isOwn(look, claim)) {
    if (observer.mustSight(look)) observer.sight(rows, look)
    return heldAnswer(look)
  }
  // The clock after everything that may take time: an expiry too late is safe, one too early is not.
  const now = observer.now()
  const common = { owner, label, state: 'held', clock: observer.id, life: observer.record(claim) } as const
  if (free) {
    const fence = checkedFence(nextFence(counter, claim.fenceFloor, wallMs))
    rows.setFence(fence)
    rows.put(key, { ...common, fence, renewals: 0, expires: now + term, term, granted: now })
    return { kind: 'granted', fence, ttlMs }
  }
  // Our own claim whose answer was lost. The fence stays: a renewal that is still under way must go on matching.
  const { row, verdict } = look
  const left = Math.max(term, verdict.remainingMs)
  const granted = verdict.foreign ? now : row.granted
  rows.put(key, { ...common, fence: row.fence, renewals: row.renewals + 1, expires: now + left, term: left, granted })
  return { kind: 'granted', fence: row.fence, ttlMs }
}

/** Taken, by others or by a claim of ours that was asked back. */
export const isOwn = ({ row }: Look, { owner }: { owner: string }): boolean =>
  row.owner === owner && row.state === 'held'

export function heldAnswer({ row, verdict }: Look): AcquireOutcome {
  const holder = row.label === null ? {} : { holder: row.label }
  return { kind: 'held', queued: false, retryAfterMs: verdict.remainingMs, ...holder }
}

export function renew({ rows, counter }: Transaction, observer: Observer, held: HeldRef): RenewOutcome {
  const look = observer.look(rows, held.key)
  // Nobody took it: deleted, expired, or given back by this very owner and kept.
  if (!look || look.verdict.expired || look.row.owner === null) return { kind: 'lost', reason: 'missing' }
  const { row, verdict } = look
  if (row.owner !== held.owner || row.fence !== held.fence) return { kind: 'lost', reason: 'taken' }
  if (row.state === 'revoked') return { kind: 'lost', reason: 'revoked' }
  const now = observer.now()
  const left = Math.max(verdict.remainingMs, held.ttlMs + held.lockDelayMs)
  rows.renew(held.key, {
    clock: observer.id,
    expires: now + left,
    term: left,
    granted: verdict.foreign ? now : row.granted,
    life: held.life === undefined ? row.life : observer.record({ ...held, life: held.life, minHoldMs: 0 }),
  })
  if (held.fenceFloor > counter) rows.setFence(checkedFence(held.fenceFloor))
  return { kind: 'renewed', fence: row.fence, ttlMs: held.ttlMs }
}

export function release(
  { rows }: Transaction,
  observer: Observer,
  key: Key,
  owner: string,
  keepMs: number,
): ReleaseOutcome {
  const look = observer.look(rows, key)
  if (look?.row.owner !== owner) return { kind: 'absent' }
  const { row, verdict } = look
  if (keepMs > 0 && !verdict.expired) {
    const now = observer.now()
    const granted = verdict.foreign ? now : row.granted
    const times = { clock: observer.id, expires: now + keepMs, term: keepMs, granted }
    rows.put(key, { ...row, ...times, owner: null, state: 'kept', renewals: row.renewals + 1, life: null })
  } else {
    rows.remove(key)
  }
  return { kind: verdict.expired ? 'absent' : 'released' }
}

/** A plain revoke of a tombstone changes nothing: nobody renews it. */
export function revoke({ rows }: Transaction, observer: Observer, key: Key, force: boolean): RevokeOutcome {
  const look = observer.look(rows, key)
  if (!look || look.verdict.expired) return { kind: 'absent' }
  if (force) rows.remove(key)
  else if (look.row.state === 'held') rows.revoke(key)
  return { kind: force ? 'freed' : 'refusing' }
}

function checkedFence(fence: bigint): bigint {
  if (fence <= MAX_FENCE) return fence
  throw new StoreError(
    `the fence would be ${fence}, and SQLite counts no further than ${MAX_FENCE} (2^63 - 1): lower fenceFloor, or begin a new file with another name`,
    'none',
  )
}

/** How many rows are looked at for each lease that is taken or given back; more while they turn out to be over. */
const PRUNE_ROWS = 8
const PRUNE_MOST = 256

/**
 * Removes rows that are over, whoever left them, so that keys that nobody asks for again do not pile up: a few rows
 * from where the last call ended, round and round. Only rows that are over by the same judgement as everywhere.
 */
export class Pruner {
  #after: Key = { namespace: '', name: '' }

  prune({ rows }: Transaction, observer: Observer): void {
    for (let seen = 0; seen < PRUNE_MOST; seen += PRUNE_ROWS) {
      const page = rows.pageAfter(this.#after, PRUNE_ROWS)
      this.#after = page.length < PRUNE_ROWS ? { namespace: '', name: '' } : (page.at(-1)?.key ?? this.#after)
      let removed = 0
      for (const look of page.map((row) => observer.judge(row))) {
        if (look.verdict.expired) {
          rows.remove(look.row.key)
          removed++
        } else if (observer.mustSight(look)) {
          observer.sight(rows, look)
        }
      }
      if (removed < PRUNE_ROWS / 2) return
    }
  }
}
