/** The tables: a wire contract between releases. A change of meaning takes a new number. */
import { StoreUnsafeError } from '../../errors.js'
import type { Connection } from './driver.js'

export const SCHEMA = 1

/**
 * `holdfast_meta`: one row, with the one fence counter of the file. `holdfast_leases`: one row for each key taken; times
 * in ms, `expires` and `granted` on the host clock named by `clock`. `holdfast_sightings`: since when observers, who
 * cannot read the clock of a lease, have seen this version of it, each by their own clock.
 */
const TABLES: Record<string, { columns: string; constraint: string }> = {
  holdfast_meta: {
    columns:
      'id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, file_id TEXT NOT NULL, fence INTEGER NOT NULL',
    constraint: 'STRICT',
  },
  holdfast_leases: {
    columns:
      'namespace TEXT NOT NULL, name TEXT NOT NULL, owner TEXT, fence INTEGER NOT NULL, renewals INTEGER NOT NULL, state TEXT NOT NULL, ' +
      'label TEXT, clock TEXT NOT NULL, expires REAL NOT NULL, term REAL NOT NULL, granted REAL NOT NULL, life TEXT, PRIMARY KEY (namespace, name)',
    constraint: 'STRICT, WITHOUT ROWID',
  },
  holdfast_sightings: {
    columns:
      'namespace TEXT NOT NULL, name TEXT NOT NULL, observer TEXT NOT NULL, fence INTEGER NOT NULL, renewals INTEGER NOT NULL, ' +
      'since REAL NOT NULL, PRIMARY KEY (namespace, name, observer)',
    constraint: 'STRICT, WITHOUT ROWID',
  },
}

/** `fresh`: nothing in it at all · `foreign`: somebody else's tables only · `ready`: ours. */
export type Contents = 'fresh' | 'foreign' | 'ready'

/** Reads what the file holds, and throws where the tables of our names are not ours. */
export function contentsOf(connection: Connection, path: string): Contents {
  const objects = connection.prepare('SELECT type, name FROM sqlite_schema').all() as { type: string; name: string }[]
  const ours = objects.filter(({ name }) => name in TABLES)
  if (ours.length === 0) return objects.length === 0 ? 'fresh' : 'foreign'
  const meta = ours.some(({ name }) => name === 'holdfast_meta') ? readSchema(connection) : undefined
  if (typeof meta === 'number' && meta > SCHEMA) throw newerSchema(path, meta)
  const sound =
    meta === SCHEMA &&
    ours.length === Object.keys(TABLES).length &&
    ours.every(({ name }) => hasColumns(connection, name))
  if (!sound) {
    throw new StoreUnsafeError(
      `${path} has tables named holdfast_… that are not those of this store; choose another file`,
    )
  }
  return 'ready'
}

export const newerSchema = (path: string, found: number): StoreUnsafeError =>
  new StoreUnsafeError(
    `${path} has schema ${found}, written by a newer release of holdfast; this one knows ${SCHEMA}: update it`,
  )

function readSchema(connection: Connection): unknown {
  try {
    const row = connection.prepare('SELECT schema FROM holdfast_meta WHERE id = 1').get() as
      | { schema: unknown }
      | undefined
    return row?.schema
  } catch (error) {
    // Tables of our name with other columns.
    if (error instanceof Error && /no such column/.test(error.message)) return undefined
    throw error
  }
}

function hasColumns(connection: Connection, table: string): boolean {
  const found = connection.prepare(`SELECT name FROM pragma_table_info('${table}')`).all() as { name: string }[]
  const names = new Set(found.map(({ name }) => name))
  const expected = (TABLES[table]?.columns ?? '').replace(/, PRIMARY KEY \(.*$/, '')
  return expected.split(', ').every((column) => names.has(column.split(' ')[0] ?? ''))
}

/** Within a write transaction. */
export function createTables(connection: Connection, fileId: string): void {
  for (const [name, { columns, constraint }] of Object.entries(TABLES)) {
    connection.exec(`CREATE TABLE ${name} (${columns}) ${constraint}`)
  }
  connection.prepare('INSERT INTO holdfast_meta (id, schema, file_id, fence) VALUES (1, ?, ?, 0)').run(SCHEMA, fileId)
}
