/** Who we are to the rows: the clock that we read, the place from which we see processes, and what we have watched. */
import type { Environment } from '../../environment.js'
import type { Key, Life } from '../../store.js'
import { decodeLife, encodeLife, hasEnded, isVisible, type RecordedLife, type Viewpoint } from './life.js'
import { glanceAt, lookAt, recordLife, viewpoint } from './processes.js'
import type { NamedRow, Rows } from './rows.js'
import { isSighted, judge, sameVersion, type Verdict } from './verdict.js'

export interface Look {
  readonly row: NamedRow
  readonly verdict: Verdict
}

/** Sightings kept in memory, at most: forgetting one only makes a take-over later. */
const MOST_SIGHTINGS = 1_000

export class Observer {
  /** Identity of our host clock. Where nobody can share it, one of our own, so that we understand our own rows. */
  readonly id: string
  readonly #environment: Environment
  #lastLife: { readonly text: string | null; readonly life: RecordedLife | null } = { text: null, life: null }
  readonly #viewpoint: Viewpoint | null
  /** What we have watched, where no later process can go on counting; else it is kept in the file. */
  readonly #sightings: Map<string, { fence: bigint; renewals: number; since: number }> | null

  constructor(environment: Environment) {
    const { identity } = environment.host
    this.id = identity ?? `process ${environment.random.id()}`
    this.#environment = environment
    this.#viewpoint = viewpoint(identity)
    this.#sightings = identity === null ? new Map() : null
  }

  now(): number {
    return this.#environment.host.now()
  }

  look(rows: Rows, key: Key): Look | null {
    const row = rows.read(key)
    return row && this.judge(row)
  }

  /** Reads the clock after the row was read: a sighting must not begin before the version that was seen. */
  judge(read: NamedRow): Look {
    const seen = this.#sightings?.get(idOf(read.key))
    const row = seen && sameVersion(seen, read) ? { ...read, since: seen.since } : read
    return { row, verdict: judge(row, this.now(), this.id) }
  }

  /** Has this version still to be noted as seen? */
  mustSight({ row, verdict }: Look): boolean {
    return verdict.foreign && !verdict.expired && !isSighted(row, this.now())
  }

  /** Begins to count; within a write transaction unless `sightsInMemory`. */
  sight(rows: Rows, { row }: Look): void {
    if (!this.#sightings) return rows.sight(row.key, row, this.now())
    const [oldest] = this.#sightings.keys()
    if (oldest !== undefined && this.#sightings.size >= MOST_SIGHTINGS) this.#sightings.delete(oldest)
    this.#sightings.set(idOf(row.key), { fence: row.fence, renewals: row.renewals, since: this.now() })
  }

  get sightsInMemory(): boolean {
    return this.#sightings !== null
  }

  /**
   * Every process of the holder is certainly dead, and the lease was not asked to outlive them. `often`: zombies and
   * numbers that were given anew count as living, for a quarter of the cost.
   */
  hasEnded({ row }: Look, often = false): boolean {
    return hasEnded(this.#lifeOf(row), this.#viewpoint, often ? glanceAt : lookAt)
  }

  /** The death of the holder could be seen from here. */
  couldEnd({ row }: Look): boolean {
    return isVisible(this.#lifeOf(row), this.#viewpoint)
  }

  /** Waiters look at the same one many times a second: the last is remembered. */
  #lifeOf({ life }: NamedRow): RecordedLife | null {
    if (this.#lastLife.text !== life) this.#lastLife = { text: life, life: decodeLife(life) }
    return this.#lastLife.life
  }

  /** What to write down of a claim's life. A lease that must last some time whatever happens has none. */
  record(claim: { life: Life; lockDelayMs: number; minHoldMs: number }): string | null {
    if (claim.lockDelayMs > 0 || claim.minHoldMs > 0) return null
    return encodeLife(recordLife(claim.life, this.#viewpoint))
  }
}

/** Injective: namespace `a` with name `b:c` is not namespace `a:b` with name `c`. */
export const idOf = (key: Key): string => JSON.stringify([key.namespace, key.name])
