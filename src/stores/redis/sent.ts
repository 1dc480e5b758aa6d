import type { Asker } from './client.js'
import type { Connection } from './connection.js'

/** What was asked on a connection, until it is answered or given up. */
export class Sent implements Asker {
  readonly sentAt: number
  stallsAt: number
  readonly asker: Asker
  readonly #connection: Connection

  constructor(connection: Connection, asker: Asker, sentAt: number, patienceMs: number) {
    this.#connection = connection
    this.asker = asker
    this.sentAt = sentAt
    this.stallsAt = sentAt + patienceMs
  }

  answered(reply: unknown): void {
    this.#connection.answered(this, reply)
  }

  failed(error: unknown): void {
    this.#connection.failed(this, error)
  }
}
