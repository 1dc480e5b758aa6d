import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type Environment, systemEnvironment } from '../environment.js'
import type { Weather } from './tcp-flow.js'
import { Link, type LinkSurroundings, resetSocket } from './tcp-link.js'

export interface TcpProxyOptions {
  /** Of the real server. */
  readonly port: number
  /** Of the real server. Default `127.0.0.1`. */
  readonly host?: string
  /** Whose timers delay things. Default the system's. */
  readonly environment?: Environment
}

/** Sums since the start. Bytes that are under way are in none of them. */
export interface TcpProxyCounts {
  /** Accepted from clients, those that were reset at once among them. */
  readonly connections: number
  /** Reset at once by `refuse()`. */
  readonly refused: number
  /** Made anew to the server for a client that was kept. */
  readonly reconnections: number
  readonly requestBytes: number
  readonly replyBytes: number
  readonly lostRequestBytes: number
  readonly lostReplyBytes: number
}

/**
 * A TCP proxy before a real server, to which faults happen.
 *
 * Of `hole`, `loseReplies`, `loseRequests`, `hang`, `delay` and `refuse` the last one called is in force, for the
 * connections there are and for new ones, until `heal()`. What is not passed includes the end of a connection: in a hole
 * neither side learns that the other one has gone. A new connection is always accepted, and reaches the server once
 * requests pass.
 */
export interface TcpProxy {
  /** Where clients connect: on 127.0.0.1. */
  readonly port: number
  /** Everything is swallowed silently, both ways; connections stay open. */
  hole(): void
  /** Requests arrive, their replies are swallowed. */
  loseReplies(): void
  /** Requests are swallowed; what the server sends unasked arrives. */
  loseRequests(): void
  /** Everything lies in a buffer, and arrives at `heal()`: as after a short interruption, when TCP repeats itself. */
  hang(): void
  /** Everything is late by so many ms: each way, or as given for each. Nothing overtakes. */
  delay(ms: number | { readonly requests?: number; readonly replies?: number }): void
  /** New connections are reset at once. Those that exist go on. */
  refuse(): void
  /** Resets every connection there is, to both sides. What was under way is gone. New ones work. */
  cut(): void
  /** Every connection there is loses its server, and its client is not told. New ones work. */
  halfOpen(): void
  /**
   * From now on, whatever `heal()` does: when the server ends a connection, the client's is kept, and another one is
   * made to the server, tried again until it is there. Some proxies do that, and so hide a restart. A reply that was
   * due is not made up for: what comes next on that connection is the next request's.
   */
  keepClients(keep?: boolean): void
  /**
   * Everything passes again. A connection that lost a byte stays dead, both ways, as a real half-open one does; one
   * that lost nothing works. What was delayed arrives when it is due.
   */
  heal(): void
  readonly counts: TcpProxyCounts
  /** Connections of clients that are not over. */
  readonly open: number
  /** Resets every connection and stops listening. Idempotent. */
  close(): Promise<void>
}

const PASS: Weather = { kind: 'pass', delayMs: 0 }
const LOSE: Weather = { kind: 'lose', delayMs: 0 }
const HANG: Weather = { kind: 'hang', delayMs: 0 }

/**
 * Resolves when it listens, on a free port of 127.0.0.1. It keeps the process running until it is closed.
 * It buffers without limit: it is for tests.
 */
export async function tcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  const { port, host = '127.0.0.1', environment = systemEnvironment() } = options
  const links = new Set<Link>()
  const counts = {
    connections: 0,
    refused: 0,
    reconnections: 0,
    requestBytes: 0,
    replyBytes: 0,
    lostRequestBytes: 0,
    lostReplyBytes: 0,
  }
  let requests = PASS
  let replies = PASS
  let refusing = false
  let keepsClients = false

  const around: LinkSurroundings = {
    clock: environment.clock,
    target: { host, port },
    requests: () => requests,
    replies: () => replies,
    keepsClients: () => keepsClients,
    count: (what, n) => {
      counts[what] += n
    },
    reconnected: () => counts.reconnections++,
    gone: (link) => links.delete(link),
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    counts.connections++
    if (!refusing) return void links.add(new Link(client, around))
    counts.refused++
    client.on('error', () => {})
    resetSocket(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  const become = (nextRequests: Weather, nextReplies: Weather, refuses = false, healed = false) => {
    requests = nextRequests
    replies = nextReplies
    refusing = refuses
    for (const link of [...links]) link.changed(healed)
  }
  const cut = () => {
    for (const link of [...links]) link.reset()
  }

  return {
    port: (server.address() as AddressInfo).port,
    hole: () => become(LOSE, LOSE),
    loseReplies: () => become(PASS, LOSE),
    loseRequests: () => become(LOSE, PASS),
    hang: () => become(HANG, HANG),
    delay(ms) {
      const each = typeof ms === 'number' ? { requests: ms, replies: ms } : ms
      become({ kind: 'pass', delayMs: each.requests ?? 0 }, { kind: 'pass', delayMs: each.replies ?? 0 })
    },
    refuse: () => become(PASS, PASS, true),
    cut,
    halfOpen() {
      for (const link of [...links]) link.halfOpen()
    },
    keepClients(keep = true) {
      keepsClients = keep
    },
    heal: () => become(PASS, PASS, false, true),
    get counts() {
      return { ...counts }
    },
    get open() {
      return links.size
    },
    async close() {
      cut()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}
