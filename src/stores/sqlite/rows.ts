/** The statements, prepared once per connection. Fences go in and out as text: JavaScript numbers end at 2^53. */
import { TextDecoder } from 'node:util'
import type { Key } from '../../store.js'
import type { Connection, Statement } from './driver.js'
import type { LeaseRow } from './verdict.js'

export interface Meta {
  readonly schema: number
  readonly fileId: string
  readonly fence: bigint
}

export type NamedRow = LeaseRow & { readonly key: Key }

// Text that may hold NUL comes back as bytes: node:sqlite of Node 22 would cut it there.
const COLUMNS =
  'CAST(l.namespace AS BLOB) AS namespace, CAST(l.name AS BLOB) AS name, l.owner, CAST(l.fence AS TEXT) AS fence, l.renewals, l.state, ' +
  'CAST(l.label AS BLOB) AS label, l.clock, l.expires, l.term, l.granted, l.life, ' +
  '(SELECT s.since FROM holdfast_sightings s WHERE s.namespace = l.namespace AND s.name = l.name AND s.observer = ? ' +
  'AND s.fence = l.fence AND s.renewals = l.renewals) AS since'

export class Rows {
  readonly #observer: string
  readonly #decoder: TextDecoder
  readonly #meta: Statement
  readonly #setFence: Statement
  readonly #one: Statement
  readonly #from: Statement
  readonly #after: Statement
  readonly #put: Statement
  readonly #renew: Statement
  readonly #revoke: Statement
  readonly #remove: Statement
  readonly #forget: Statement
  readonly #forgetOld: Statement
  readonly #sight: Statement

  constructor(connection: Connection, observer: string) {
    this.#observer = observer
    const encoding = (connection.prepare('PRAGMA encoding').get() as { encoding: string }).encoding
    this.#decoder = new TextDecoder(encoding, { ignoreBOM: true })
    this.#meta = connection.prepare(
      'SELECT schema, file_id, CAST(fence AS TEXT) AS fence FROM holdfast_meta WHERE id = 1',
    )
    this.#setFence = connection.prepare('UPDATE holdfast_meta SET fence = CAST(? AS INTEGER) WHERE id = 1')
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM holdfast_leases l WHERE l.namespace = ? AND l.name = ?`)
    const page = (condition: string) =>
      `SELECT ${COLUMNS} FROM holdfast_leases l WHERE ${condition} ORDER BY l.namespace, l.name LIMIT ?`
    this.#from = connection.prepare(page('l.namespace = ? AND l.name >= ?'))
    this.#after = connection.prepare(page('(l.namespace, l.name) > (?, ?)'))
    this.#put = connection.prepare(
      'INSERT OR REPLACE INTO holdfast_leases (namespace, name, owner, fence, renewals, state, label, clock, expires, term, granted, life) ' +
        'VALUES (?, ?, ?, CAST(? AS INTEGER), ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#renew = connection.prepare(
      'UPDATE holdfast_leases SET renewals = renewals + 1, clock = ?, expires = ?, term = ?, granted = ?, life = ? WHERE namespace = ? AND name = ?',
    )
    this.#revoke = connection.prepare("UPDATE holdfast_leases SET state = 'revoked' WHERE namespace = ? AND name = ?")
    this.#remove = connection.prepare('DELETE FROM holdfast_leases WHERE namespace = ? AND name = ?')
    this.#forget = connection.prepare('DELETE FROM holdfast_sightings WHERE namespace = ? AND name = ?')
    this.#forgetOld = connection.prepare(
      'DELETE FROM holdfast_sightings WHERE namespace = ? AND name = ? AND (fence <> CAST(? AS INTEGER) OR renewals <> ?)',
    )
    this.#sight = connection.prepare(
      'INSERT OR REPLACE INTO holdfast_sightings (namespace, name, observer, fence, renewals, since) VALUES (?, ?, ?, CAST(? AS INTEGER), ?, ?)',
    )
  }

  meta(): Meta {
    const row = this.#meta.get() as { schema: number; file_id: string; fence: string } | undefined
    if (!row) throw new Error('holdfast_meta has lost its row')
    return { schema: row.schema, fileId: row.file_id, fence: BigInt(row.fence) }
  }

  setFence(fence: bigint): void {
    this.#setFence.run(String(fence))
  }

  read({ namespace, name }: Key): NamedRow | null {
    const row = this.#one.get(this.#observer, namespace, name)
    return row ? this.#decode(row) : null
  }

  /** In the order of names, from this one on; within one namespace. */
  page(from: Key, count: number): NamedRow[] {
    return this.#from.all(this.#observer, from.namespace, from.name, count).map((row) => this.#decode(row))
  }

  /** In the order of namespaces and names, after this one; over all namespaces. */
  pageAfter(after: Key, count: number): NamedRow[] {
    return this.#after.all(this.#observer, after.namespace, after.name, count).map((row) => this.#decode(row))
  }

  put({ namespace, name }: Key, row: Omit<LeaseRow, 'since'>): void {
    const { owner, fence, renewals, state, label, clock, expires, term, granted, life } = row
    this.#put.run(namespace, name, owner, String(fence), renewals, state, label, clock, expires, term, granted, life)
    this.#forget.run(namespace, name)
  }

  renew(
    { namespace, name }: Key,
    { clock, expires, term, granted, life }: Pick<LeaseRow, 'clock' | 'expires' | 'term' | 'granted' | 'life'>,
  ): void {
    this.#renew.run(clock, expires, term, granted, life, namespace, name)
  }

  revoke({ namespace, name }: Key): void {
    this.#revoke.run(namespace, name)
  }

  remove({ namespace, name }: Key): void {
    this.#remove.run(namespace, name)
    this.#forget.run(namespace, name)
  }

  /** Sightings of earlier versions go, so that there are never more than observers of this one. */
  sight({ namespace, name }: Key, row: LeaseRow, now: number): void {
    this.#forgetOld.run(namespace, name, String(row.fence), row.renewals)
    this.#sight.run(namespace, name, this.#observer, String(row.fence), row.renewals, now)
  }

  #decode(row: unknown): NamedRow {
    const raw = row as Omit<LeaseRow, 'fence' | 'label'> & {
      namespace: Uint8Array
      name: Uint8Array
      fence: string
      label: Uint8Array | null
    }
    const text = (bytes: Uint8Array) => this.#decoder.decode(bytes)
    return {
      ...raw,
      fence: BigInt(raw.fence),
      label: raw.label && text(raw.label),
      key: { namespace: text(raw.namespace), name: text(raw.name) },
    }
  }
}
