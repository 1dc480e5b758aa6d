/**
 * Reads and writes of the lease file: opened when first needed, tried again while it is busy, opened anew when it was
 * deleted or replaced. No call ever waits inside SQLite; waiting is done here, asynchronously.
 */

import { type Environment, sleep, turn } from '../../environment.js'
import { StoreError } from '../../errors.js'
import type { CallOptions } from '../../store.js'
import { type Driver, loadDriver } from './driver.js'
import { failure, isBusy, sqliteCode } from './failures.js'
import { LockedError, PATIENCE } from './patience.js'
import type { Rows } from './rows.js'
import { newerSchema, SCHEMA } from './schema.js'
import { type Durability, Session } from './session.js'

/** What a transaction works with. */
export interface Transaction {
  readonly rows: Rows
  /** The fence counter of the file. */
  readonly counter: bigint
}

/**
 * Pauses between tries at a busy file, in ms. Beside a process that writes without a break the file is free for a tenth
 * of the time, so that many short pauses get through where few long ones starve; a try costs 10 µs.
 */
const PAUSE = { leastMs: 1, growsAfter: 50, growthMs: 0.25, mostMs: 4 }
/** After so many reads, or an eighth as many writes, in one turn of the event loop (about 5 ms), others get a turn. */
const BURST = { most: 128, read: 1, write: 8 }
export interface FileCall extends CallOptions {
  /** Default: 4 s. */
  readonly patienceMs?: number
}

/** What a call answers where its work cannot be done in the file that was open. */
export interface Instead<T> {
  /** There is no file, or none with our tables. Without this, one is made. */
  readonly absent?: () => T
  /** The path no longer leads to the file that was open. Without this, the work is done in what is there now. */
  readonly replaced?: () => T
}

export class LeaseFile {
  readonly path: string
  readonly #environment: Environment
  readonly #observer: string
  readonly #given: Driver | undefined
  #driver: Promise<Driver> | undefined
  #session: Session | undefined
  #closed = false
  /** The highest counter seen committed. */
  #counter = 0n
  /** Until the next try at a busy file: one for all calls, so that a thousand of them try no more often than one. */
  #pause: Promise<void> | undefined
  #failures = 0
  #burst = 0

  constructor(path: string, driver: Driver | undefined, environment: Environment, observer: string) {
    this.path = path
    this.#given = driver
    this.#environment = environment
    this.#observer = observer
  }

  /** The open connection, if there is one. */
  get session(): Session | undefined {
    return this.#session
  }

  /** Whether raising the counter to `floor` would be news to the file: news that must be on disk. */
  wouldRaise(floor: bigint): boolean {
    return floor > this.#counter
  }

  /** Reads without a lock that anybody would have to wait for, and makes no file. */
  read<T>(call: FileCall, work: (session: Session) => T, absent: () => T): Promise<T> {
    return this.#attempts(call, absent, false, (session) => {
      if (session.isOutdated() || !session.isCurrent()) return this.#reopen()
      this.#count(BURST.read)
      return { value: work(session) }
    })
  }

  /** One transaction. */
  write<T>(
    call: FileCall,
    durability: Durability,
    work: (transaction: Transaction) => T,
    { absent, replaced }: Instead<T> = {},
  ): Promise<T> {
    return this.#attempts(call, absent, true, (session) => {
      session.begin(durability)
      if (session.isOutdated()) return this.#reopen()
      if (!session.isCurrent()) return this.#reopen(replaced)
      const meta = session.rows.meta()
      if (meta.schema > SCHEMA) throw newerSchema(this.path, meta.schema)
      const value = work({ rows: session.rows, counter: meta.fence })
      try {
        session.commit()
      } catch (error) {
        throw isBusy(error) ? error : failure(error, this.path, true)
      }
      this.#count(BURST.write)
      if (meta.fence > this.#counter) this.#counter = meta.fence
      // What was written to a file that nobody finds any more was not written.
      return this.#isReplaced() ? this.#reopen(replaced) : { value }
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#drop()
  }

  async #attempts<T>(
    { signal, patienceMs = PATIENCE.mostMs }: FileCall,
    absent: (() => T) | undefined,
    writes: boolean,
    attempt: (session: Session) => { value: T } | 'again',
  ): Promise<T> {
    const { clock } = this.#environment
    const driver = await this.#loadedDriver()
    const start = clock.now()
    for (let tries = 0; ; tries++) {
      while (this.#burst >= BURST.most) await turn()
      if (this.#closed) throw new StoreError(`the store of ${this.path} is closed`, 'none')
      if (signal.aborted) throw this.#gaveUp(tries, clock.now() - start, signal.reason)
      // Those who asked first are the first to go on when the pause is over; if that fails, nobody else tries.
      const done = writes && this.#pause ? 'again' : this.#try(driver, attempt, absent)
      if (done !== 'again') {
        this.#failures = 0
        return done.value
      }
      const waitedMs = clock.now() - start
      if (waitedMs >= patienceMs && tries + 1 >= PATIENCE.leastTries)
        throw new LockedError(this.path, waitedMs, tries + 1)
      this.#pause ??= this.#rest()
      await this.#pause
    }
  }

  async #rest(): Promise<void> {
    const { clock, random } = this.#environment
    const growth = PAUSE.growthMs * Math.max(this.#failures++ - PAUSE.growsAfter, 0)
    const ms = Math.min(PAUSE.leastMs + growth, PAUSE.mostMs)
    await sleep(clock, ms * (0.5 + random.next()), { keepAlive: true })
    this.#pause = undefined
  }

  /** A thousand calls at once must not keep every timer of the process waiting. */
  #count(weight: number): void {
    const first = this.#burst === 0
    this.#burst += weight
    if (!first) return
    void turn().then(() => {
      this.#burst = 0
    })
  }

  #try<T>(
    driver: Driver,
    attempt: (session: Session) => { value: T } | 'again',
    absent: (() => T) | undefined,
  ): { value: T } | 'again' {
    try {
      this.#session ??= this.#open(driver, absent === undefined)
      if (this.#session) return attempt(this.#session)
      return absent ? { value: absent() } : 'again'
    } catch (error) {
      this.#session?.rollback()
      if (isBusy(error)) return 'again'
      // A file that is gone fails in many ways; the next try finds the one that is there now.
      const code = sqliteCode(error) ?? sqliteCode((error as Error).cause)
      const unknown = error instanceof StoreError && error.effect === 'unknown'
      if (code !== null && !unknown && this.#isReplaced()) return this.#reopen()
      // After a full disk the connection is sound; after anything else only a new one is known to be.
      if (code !== null && code !== 'FULL') this.#drop()
      throw failure(error, this.path, false)
    } finally {
      this.#session?.rollback()
    }
  }

  #open(driver: Driver, create: boolean): Session | undefined {
    const { path } = this
    const known = { path, driver, environment: this.#environment, observer: this.#observer }
    return Session.open({ ...known, keepJournalMode: this.#given !== undefined, create }) ?? undefined
  }

  #isReplaced(): boolean {
    try {
      return this.#session?.isCurrent() === false
    } catch {
      return false
    }
  }

  #reopen<T>(replaced?: () => T): { value: T } | 'again' {
    this.#drop()
    return replaced ? { value: replaced() } : 'again'
  }

  #drop(): void {
    const session = this.#session
    this.#session = undefined
    session?.rollback()
    try {
      session?.close()
    } catch {}
  }

  #loadedDriver(): Promise<Driver> {
    if (this.#given) return Promise.resolve(this.#given)
    this.#driver ??= loadDriver().catch((error: unknown) => {
      this.#driver = undefined
      throw error
    })
    return this.#driver
  }

  #gaveUp(tries: number, waitedMs: number, cause?: unknown): StoreError {
    if (tries === 0) return new StoreError('the call was cancelled before it began', 'none', { cause })
    return new LockedError(this.path, waitedMs, tries, cause)
  }
}
