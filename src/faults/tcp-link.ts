import { connect, type Socket } from 'node:net'
import type { Clock } from '../environment.js'
import { Flow, type Sink, type Weather } from './tcp-flow.js'

/** What a link has to know of its proxy, now and at any later moment. */
export interface LinkSurroundings {
  readonly clock: Clock
  readonly target: { readonly host: string; readonly port: number }
  readonly requests: () => Weather
  readonly replies: () => Weather
  readonly keepsClients: () => boolean
  readonly count: (what: 'requestBytes' | 'replyBytes' | 'lostRequestBytes' | 'lostReplyBytes', n: number) => void
  readonly reconnected: () => void
  /** Neither side is open any more. */
  readonly gone: (link: Link) => void
}

const LOST: Weather = { kind: 'lose', delayMs: 0 }
/** How soon a server that is away is tried again for a client that was kept. */
const AGAIN_MS = 20

/** A client's connection, and the one to the server that is made for it. */
export class Link {
  readonly #client: Socket
  readonly #around: LinkSurroundings
  readonly #requests: Flow
  readonly #replies: Flow
  #server: Socket | undefined
  #serverReady = false
  /** Nothing passes any more, either way, and neither side is told. */
  #dead = false
  #closed = false

  constructor(client: Socket, around: LinkSurroundings) {
    this.#client = client
    this.#around = around
    const { clock, count } = around
    this.#requests = new Flow(
      clock,
      () => (this.#dead ? LOST : around.requests()),
      () => (this.#serverReady ? sinkOf(this.#server) : null),
      (what, n) => count(what === 'passed' ? 'requestBytes' : 'lostRequestBytes', n),
    )
    this.#replies = new Flow(
      clock,
      () => (this.#dead ? LOST : around.replies()),
      () => sinkOf(client),
      (what, n) => count(what === 'passed' ? 'replyBytes' : 'lostReplyBytes', n),
    )
    client.setNoDelay(true)
    client.on('data', (bytes) => this.#requests.push(bytes))
    client.on('end', () => this.#requests.push('end'))
    client.on('error', () => this.#requests.push('reset'))
    client.on('close', () => this.#lookIfGone())
    this.changed()
  }

  /** The weather is another one. What lost something before stays dead when all else has healed. */
  changed(healed = false): void {
    if (healed && (this.#requests.spoiled || this.#replies.spoiled)) this.#dead = true
    if (!this.#server && !this.#dead && this.#around.requests().kind === 'pass') this.#connect()
    this.#requests.pump()
    this.#replies.pump()
  }

  /** The server's side is gone, and the client is not told. */
  halfOpen(): void {
    this.#dead = true
    this.#serverReady = false
    this.#server?.destroy()
  }

  reset(): void {
    this.#closed = true
    this.#requests.stop()
    this.#replies.stop()
    resetSocket(this.#client)
    if (this.#server) resetSocket(this.#server)
    this.#lookIfGone()
  }

  #connect(): void {
    const server = connect({ ...this.#around.target, allowHalfOpen: true, noDelay: true })
    this.#server = server
    let ended = false
    const isCurrent = () => this.#server === server && !this.#closed
    const over = (how: 'end' | 'reset') => {
      if (ended || !isCurrent()) return
      ended = true
      if (this.#around.keepsClients() && !this.#client.destroyed && !this.#dead) this.#connectAgain()
      else this.#replies.push(how)
    }
    server.on('connect', () => {
      if (!isCurrent()) return
      this.#serverReady = true
      this.#requests.pump()
    })
    server.on('data', (bytes) => isCurrent() && this.#replies.push(bytes))
    server.on('end', () => over('end'))
    server.on('error', () => over('reset'))
    server.on('close', () => {
      if (isCurrent()) this.#serverReady = false
      over('reset')
      this.#lookIfGone()
    })
  }

  #connectAgain(): void {
    this.#serverReady = false
    this.#server?.destroy()
    this.#around.clock.timer(
      AGAIN_MS,
      () => {
        if (this.#closed || this.#client.destroyed) return
        this.#around.reconnected()
        this.#connect()
      },
      { keepAlive: true },
    )
  }

  #lookIfGone(): void {
    // A request that is held up arrives although its client has given up.
    const nothingToCome = this.#server ? this.#server.destroyed : this.#requests.empty
    if (this.#client.destroyed && nothingToCome) this.#around.gone(this)
  }
}

/**
 * With RST, where that is still possible: Node 20 never closes a socket that is reset after it was ended, and then spins at the
 * end of the process.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.writableEnded || socket.connecting) socket.destroy()
  else socket.resetAndDestroy()
}

/** `null`: there is nothing to write to, now or any more. */
function sinkOf(socket: Socket | undefined): Sink {
  if (!socket) return null
  // What arrives at a socket that is closed is dropped by its host, as anywhere.
  const open = () => !socket.destroyed && !socket.writableEnded
  return {
    write: (bytes) => void (open() && socket.write(bytes)),
    end: () => void (open() && socket.end()),
    reset: () => resetSocket(socket),
  }
}
