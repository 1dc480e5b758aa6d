/** What is measured, as every measurement sees it. */

export interface Held {
  release(): PromiseLike<unknown>
}

/** One client of the server, in one process. */
export interface Contestant {
  /** Waits for its turn, as long as it takes. */
  acquire(key: string): Promise<Held>
  /** As `acquire`, and keeps the lease alive, by a heartbeat every third of the TTL where that can be chosen. */
  hold(key: string): Promise<Held>
}

export interface Setup {
  readonly port: number
  readonly ttlMs: number
}

export interface Entry {
  readonly name: string
  /** What comes out of the tables differently for reasons that they do not show. */
  readonly note: string
  /** The commands that it sends; the server counts those within scripts too, but those are of other names. */
  readonly sends: readonly string[]
  /** Comes from `bench/peers`. */
  readonly isPeer: boolean
  /** The key on the server that expires when the lease does. */
  serverKey(key: string): string
  open(setup: Setup): Promise<Contestant>
}
