/**
 * Hints: is the key free, has the claim changed? A watch on the write-ahead log makes most changes known at once, and a
 * slow ticker finds the rest. Only where a holder's death can be seen does the ticker look at its processes often,
 * since nothing else tells. Speed, never correctness: what fails here is found by asking again.
 */
import { type FSWatcher, watch as watchFile } from 'node:fs'
import type { Clock, Timer } from '../../environment.js'
import type { ClaimRef, Key, Watch } from '../../store.js'
import type { LeaseFile } from './lease-file.js'
import { idOf, type Look, type Observer } from './observer.js'
import type { Session } from './session.js'

/** With what follows, a death is answered within 100 ms. */
const LIFE_TICK_MS = 50
/** How often the file is read although nothing told of a change. */
const FILE_TICK_MS = 200
/** The log is written a moment before its content counts as committed: look once more. */
const COMMIT_MS = 2
/** Looking takes at most about this part of our time, however often others write… */
const SHARE = 0.05
/** …and no more than so many leases of our own at once. */
const OURS_AT_ONCE = 100

interface Watcher {
  readonly owner: string
  readonly onHint: () => void
  /** At the last look, the key was held by this very claim. */
  mine: boolean
  /** It was told that the key is free, and nobody has taken it since. */
  told: boolean
}

interface Watched {
  readonly key: Key
  readonly watchers: Set<Watcher>
  look: Look | null
  /** The holder's death can be seen from here. */
  mortal: boolean
  /** How many have not been told yet that the key is free. */
  untold: number
}

export class Watchers {
  readonly #file: LeaseFile
  readonly #observer: Observer
  readonly #clock: Clock
  readonly #keys = new Map<string, Watched>()
  /** Those of `#keys` that somebody waits for. */
  readonly #waited = new Set<Watched>()
  #round: Watched[] = []
  #session: Session | undefined
  #dataVersion = 0
  #replaced = false
  #timer: Timer | undefined
  #log: FSWatcher | undefined
  /** Something was written: read the file soon (and then once more), but not before this. */
  #hurry = false
  #again = false
  #notBefore = 0
  #readAt = Number.NEGATIVE_INFINITY

  constructor(file: LeaseFile, observer: Observer, clock: Clock) {
    this.#file = file
    this.#observer = observer
    this.#clock = clock
  }

  /** `look`: what was just read. A key that is free then is told of at once. */
  add({ key, owner }: ClaimRef, onHint: () => void, look: Look | null): Watch {
    const id = idOf(key)
    const watched: Watched = this.#keys.get(id) ?? { key, watchers: new Set(), look, mortal: false, untold: 0 }
    watched.look = look
    const watcher: Watcher = { owner, onHint, mine: false, told: false }
    watched.watchers.add(watcher)
    this.#keys.set(id, watched)
    if (this.#file.session) this.#follow(this.#file.session)
    this.#judge(watched)
    this.#schedule()
    return {
      close: () => {
        watched.watchers.delete(watcher)
        if (watched.watchers.size > 0 || this.#keys.get(id) !== watched) return
        this.#keys.delete(id)
        this.#waited.delete(watched)
        if (this.#keys.size === 0) this.#stop()
      },
    }
  }

  /** This process changed the key itself, which the file's version does not tell. */
  touch(key: Key): void {
    const watched = this.#keys.get(idOf(key))
    const session = this.#file.session
    if (!watched || !session) return
    this.#quietly(() => this.#read(watched, session))
    this.#schedule()
  }

  close(): void {
    this.#keys.clear()
    this.#waited.clear()
    this.#stop()
  }

  #tick(): void {
    const start = this.#clock.now()
    const due = this.#hurry || start - this.#readAt >= FILE_TICK_MS || !this.#log
    this.#hurry = this.#again
    this.#again = false
    this.#quietly(() => (due ? this.#readFile() : this.#judgeWaited(true)))
    if (due) {
      this.#readAt = this.#clock.now()
      this.#notBefore = this.#readAt + (this.#readAt - start) / SHARE
    }
    this.#schedule()
  }

  #logWritten(): void {
    this.#hurry = true
    this.#again = true
    if (this.#clock.now() >= this.#notBefore) this.#tick()
    else this.#schedule()
  }

  #readFile(): void {
    const session = this.#file.session
    // Or another call found it replaced, and nobody has opened what is there now.
    const replaced = session ? !session.isCurrent() : this.#session !== undefined
    if (replaced && !this.#replaced) this.#hintAll()
    this.#replaced = replaced
    if (!session || replaced) return
    this.#follow(session)
    const before = this.#dataVersion
    this.#dataVersion = session.dataVersion()
    if (this.#dataVersion === before) return this.#judgeWaited()
    for (const watched of [...this.#waited]) this.#read(watched, session)
    this.#readSomeOfOurs(session)
  }

  /** `often`: as cheap as it can be. A key that is ours, and that nobody waits for, changes only with the file. */
  #judgeWaited(often = false): void {
    for (const watched of [...this.#waited]) this.#judge(watched, often)
  }

  /** Of thousands of leases that this process holds some at a time, round and round: their heartbeats ask as well. */
  #readSomeOfOurs(session: Session): void {
    // Not an iterator that is kept: it would keep every table that the map has outgrown.
    if (this.#round.length === 0) this.#round = [...this.#keys.values()]
    for (const watched of this.#round.splice(0, OURS_AT_ONCE)) {
      if (watched.watchers.size > 0 && !this.#waited.has(watched)) this.#read(watched, session)
    }
  }

  #follow(session: Session): void {
    if (session === this.#session) return
    this.#session = session
    // No version that it can have: the next look reads everything.
    this.#dataVersion = -1
    this.#followLog(session)
  }

  #read(watched: Watched, session: Session): void {
    watched.look = this.#observer.look(session.rows, watched.key)
    this.#judge(watched)
  }

  #judge(watched: Watched, often = false): void {
    const look = watched.look && this.#observer.judge(watched.look.row)
    watched.look = look
    watched.mortal = look !== null && this.#isMortal(watched, look)
    const free = !look || look.verdict.expired || (watched.mortal && this.#observer.hasEnded(look, often))
    // That it is free is told to one at a time, the longest waiting first: of many who run at once all but one run in
    // vain. The next is told at the next look, should the key still be free.
    watched.untold = 0
    let telling = free
    let waited = false
    for (const watcher of watched.watchers) {
      const mine = !free && look.row.owner === watcher.owner && look.row.state === 'held'
      const tell = telling && !watcher.told
      if (tell || (watcher.mine && !mine)) this.#hint(watched, watcher)
      if (tell) telling = false
      watcher.mine = mine
      watcher.told = free && (watcher.told || tell)
      if (free && !watcher.told) watched.untold++
      waited ||= !mine
    }
    this.#waited[waited ? 'add' : 'delete'](watched)
  }

  /** A death could be seen, and is news: whether our own processes live need not be asked. */
  #isMortal({ watchers }: Watched, look: Look): boolean {
    const [only] = watchers
    if (watchers.size === 1 && only?.owner === look.row.owner) return false
    return this.#observer.couldEnd(look)
  }

  #hintAll(): void {
    for (const watched of this.#keys.values()) for (const watcher of watched.watchers) this.#hint(watched, watcher)
  }

  /** Never within the call that caused it, and not after the watch was closed. */
  #hint({ watchers }: Watched, watcher: Watcher): void {
    queueMicrotask(() => watchers.has(watcher) && watcher.onHint())
  }

  /** The next look: after a tick, when the first lease ends, or a moment after the log was written. */
  #schedule(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#keys.size === 0) return
    let wait = this.#log ? FILE_TICK_MS : LIFE_TICK_MS
    for (const { look, mortal, untold } of this.#waited) {
      if (mortal || untold > 0) wait = Math.min(wait, LIFE_TICK_MS)
      if (look && !look.verdict.expired) wait = Math.min(wait, look.verdict.remainingMs)
    }
    if (this.#hurry) wait = Math.min(wait, Math.max(COMMIT_MS, this.#notBefore - this.#clock.now()))
    this.#timer = this.#clock.timer(Math.max(wait, 1), () => this.#tick())
  }

  /** A folder that cannot be watched (too many watches, another system) leaves us with the ticker. */
  #followLog({ journalMode, real }: Session): void {
    this.#log?.close()
    this.#log = undefined
    // Never the database itself: on some systems a watch opens it, and closing that would drop SQLite's locks.
    if (journalMode !== 'wal') return
    this.#quietly(() => {
      const log = watchFile(`${real}-wal`, { persistent: false }, () => this.#logWritten())
      log.on('error', () => {
        log.close()
        if (this.#log === log) this.#log = undefined
      })
      this.#log = log
    })
  }

  #stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#log?.close()
    this.#log = undefined
    this.#session = undefined
    this.#round = []
  }

  #quietly(action: () => void): void {
    try {
      action()
    } catch {}
  }
}
