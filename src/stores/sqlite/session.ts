/** One open connection: opened step by step, and dropped whole when the file is no longer the one that was opened. */

import type { Environment } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { Connection, Driver, Statement } from './driver.js'
import { isBusy } from './failures.js'
import { locate } from './file.js'
import { type FileIdentity, idAt, identityOf, stillThere } from './identity.js'
import { Rows } from './rows.js'
import { contentsOf, createTables } from './schema.js'

/**
 * `full`: on disk before the call is answered. `normal`: in the operating system's hands; a power cut may undo it, but
 * nothing that came before a later `full` commit, and only together with the boot that it belonged to.
 */
export type Durability = 'full' | 'normal'

/**
 * Without a WAL a commit waits for readers. New ones are kept out meanwhile, and a look lasts some microseconds, so a
 * few tries at once, for a millisecond or two, get through where one would starve.
 */
const COMMIT_TRIES = 100

export interface Opening {
  readonly path: string
  readonly driver: Driver
  readonly environment: Environment
  readonly observer: string
  /** An empty file keeps its journal mode, too: an application chose how it is journaled. */
  readonly keepJournalMode: boolean
  /** Makes the file and its tables where they are missing. */
  readonly create: boolean
}

export class Session {
  readonly path: string
  /** Without symbolic links: what lies beside it are its companions. */
  readonly real: string
  readonly rows: Rows
  readonly journalMode: string
  readonly identity: FileIdentity
  readonly sqliteVersion: string
  readonly #connection: Connection
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #dataVersion: Statement
  #durability: Durability = 'full'
  #inTransaction = false

  /**
   * `null` where no lease can be, as there is no file or none with our tables, and none shall be made. Throws the
   * driver's error when the file is busy; whoever called tries again. A file that holds anything keeps its journal mode.
   */
  static open(opening: Opening): Session | null {
    const { path, driver, create } = opening
    const real = locate(path, create)
    if (real === null) return null
    const before = identityOf(path, real)
    const connection = driver(real)
    let session: Session | null = null
    try {
      connection.exec('PRAGMA busy_timeout = 0')
      connection.exec('PRAGMA synchronous = FULL')
      refuseOtherFile(connection, before, path)
      if (prepareTables(connection, opening)) {
        session = new Session(path, real, connection, opening.observer)
        if (session.identity.main !== before?.main) throw replacedMeanwhile(path)
        session.isCurrent()
      }
      return session
    } catch (error) {
      session = null
      throw error
    } finally {
      if (!session) connection.close()
    }
  }

  private constructor(path: string, real: string, connection: Connection, observer: string) {
    this.path = path
    this.real = real
    this.#connection = connection
    this.rows = new Rows(connection, observer)
    this.#begin = connection.prepare('BEGIN IMMEDIATE')
    this.#commit = connection.prepare('COMMIT')
    this.#rollback = connection.prepare('ROLLBACK')
    this.#dataVersion = connection.prepare('PRAGMA data_version')
    this.journalMode = (connection.prepare('PRAGMA journal_mode').get() as { journal_mode: string }).journal_mode
    this.sqliteVersion = (connection.prepare('SELECT sqlite_version() AS v').get() as { v: string }).v
    this.rows.meta()
    // After a first read: SQLite makes the companions when it needs them.
    const identity = identityOf(path, real)
    if (!identity) throw new StoreError(`${path} was deleted while it was opened`, 'none')
    const wal = this.journalMode === 'wal'
    // A connection of this process by the file's former name lends us its shared memory, which belongs to another log.
    if (wal && (identity.wal === null || identity.shm === null))
      throw new StoreError(
        `${path} was opened without a -wal and -shm of its own: this process has it open by another name`,
        'none',
      )
    this.identity = wal ? identity : { ...identity, wal: null, shm: null }
  }

  /** False when the path leads to another file than the one that is open, or to none. */
  isCurrent(): boolean {
    return stillThere(this.identity, this.path, this.real)
  }

  /** Somebody has switched the file to a WAL since we opened it: what we know of its companions is no longer true. */
  isOutdated(): boolean {
    return this.journalMode !== 'wal' && idAt(`${this.real}-wal`, true) !== null
  }

  begin(durability: Durability): void {
    // Without a WAL, anything less than FULL could damage the file in a power cut.
    const wanted = this.journalMode === 'wal' ? durability : 'full'
    if (wanted !== this.#durability) {
      this.#connection.exec(`PRAGMA synchronous = ${wanted}`)
      this.#durability = wanted
    }
    this.#begin.run()
    this.#inTransaction = true
  }

  commit(): void {
    for (let tries = 1; this.#inTransaction; tries++) {
      try {
        this.#commit.run()
        this.#inTransaction = false
      } catch (error) {
        if (!isBusy(error) || tries >= COMMIT_TRIES) throw error
      }
    }
  }

  /** Does nothing outside a transaction. SQLite may have rolled back by itself. */
  rollback(): void {
    if (!this.#inTransaction) return
    this.#inTransaction = false
    try {
      this.#rollback.run()
    } catch {}
  }

  /** Changes when another connection has committed; 2 µs. */
  dataVersion(): number {
    return (this.#dataVersion.get() as { data_version: number }).data_version
  }

  close(): void {
    this.#connection.close()
  }
}

const replacedMeanwhile = (path: string): StoreError =>
  new StoreError(`${path} was replaced while it was opened`, 'none')

/** The driver might spell a name in other bytes than we do, and so have opened, or made, another file. */
function refuseOtherFile(connection: Connection, before: FileIdentity | null, path: string): void {
  const files = connection.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[]
  const file = files.find(({ name }) => name === 'main')?.file
  if (!file || !before || idAt(file, true) !== before.main) throw replacedMeanwhile(path)
}

/** Are our tables there? */
function prepareTables(connection: Connection, { path, environment, keepJournalMode, create }: Opening): boolean {
  const contents = contentsOf(connection, path)
  if (contents === 'ready' || !create) return contents === 'ready'
  if (contents === 'fresh' && !keepJournalMode) connection.exec('PRAGMA journal_mode = WAL')
  connection.exec('BEGIN IMMEDIATE')
  try {
    if (contentsOf(connection, path) !== 'ready') createTables(connection, environment.random.id())
    connection.exec('COMMIT')
    return true
  } catch (error) {
    try {
      connection.exec('ROLLBACK')
    } catch {}
    throw error
  }
}
