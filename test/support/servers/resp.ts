/**
 * The wire of Redis (RESP2), just enough to ask a server what is so without any client library, and so without anything
 * that is under test.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** Errors within an array are values too; an error as the whole answer rejects. */
export type Reply = string | number | null | Error | Reply[]

export interface RawConnection {
  /** Rejects with the server's error text as the message. Several at a time are answered in their order. */
  send(...args: (string | number)[]): Promise<Reply>
  close(): void
}

export interface RawOptions {
  readonly port: number
  readonly host?: string
  readonly username?: string
  readonly password?: string
  /** The authority to trust, PEM: speaks TLS then. */
  readonly ca?: string
  /** How long an answer may take. Default 5 s: no test shall hang because a server does. */
  readonly timeoutMs?: number
}

export async function rawConnection(options: RawOptions): Promise<RawConnection> {
  const { port, host = '127.0.0.1', username = 'default', password, ca, timeoutMs = 5000 } = options
  const socket = ca === undefined ? connect(port, host) : connectTls({ port, host, ca, servername: 'localhost' })
  const wire = new Wire(socket, timeoutMs)
  try {
    if (password !== undefined) await wire.send('AUTH', username, password)
  } catch (error) {
    wire.close()
    throw error
  }
  return wire
}

class Wire implements RawConnection {
  readonly #socket: Socket
  readonly #timeoutMs: number
  readonly #waiting: { resolve(reply: Reply): void; reject(error: Error): void }[] = []
  #received: Buffer = Buffer.alloc(0)

  constructor(socket: Socket, timeoutMs: number) {
    this.#socket = socket
    this.#timeoutMs = timeoutMs
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the connection was closed')))
  }

  send(...args: (string | number)[]): Promise<Reply> {
    const parts = args.map((arg) => `$${Buffer.byteLength(`${arg}`)}\r\n${arg}\r\n`)
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the connection is closed'))
      const late = () => this.#fail(new Error(`no answer to ${args[0]} within ${this.#timeoutMs} ms`))
      const timer = setTimeout(late, this.#timeoutMs)
      const settle =
        <T>(how: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer)
          how(value)
        }
      this.#waiting.push({ resolve: settle(resolve), reject: settle(reject) })
      this.#socket.write(`*${args.length}\r\n${parts.join('')}`)
    })
  }

  close(): void {
    this.#fail(new Error('the connection was closed by the test'))
  }

  #fail(error: Error): void {
    this.#socket.destroy()
    for (const each of this.#waiting.splice(0)) each.reject(error)
  }

  #take(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes])
    for (;;) {
      const parsed = parse(this.#received, 0)
      if (!parsed) return
      this.#received = this.#received.subarray(parsed.end)
      const first = this.#waiting.shift()
      if (parsed.reply instanceof Error) first?.reject(parsed.reply)
      else first?.resolve(parsed.reply)
    }
  }
}

/** `null` until the reply is there as a whole. */
function parse(bytes: Buffer, from: number): { reply: Reply; end: number } | null {
  const lineEnd = bytes.indexOf('\r\n', from)
  if (lineEnd < 0) return null
  const text = bytes.toString('utf8', from + 1, lineEnd)
  let end = lineEnd + 2
  switch (String.fromCharCode(bytes[from] ?? 0)) {
    case '+':
      return { reply: text, end }
    case '-':
      return { reply: new Error(text), end }
    case ':':
      return { reply: Number(text), end }
    case '$': {
      const length = Number(text)
      if (length < 0) return { reply: null, end }
      if (bytes.length < end + length + 2) return null
      return { reply: bytes.toString('utf8', end, end + length), end: end + length + 2 }
    }
    case '*': {
      if (Number(text) < 0) return { reply: null, end }
      const replies: Reply[] = []
      while (replies.length < Number(text)) {
        const each = parse(bytes, end)
        if (!each) return null
        replies.push(each.reply)
        end = each.end
      }
      return { reply: replies, end }
    }
    default:
      throw new Error(`not RESP2: ${JSON.stringify(bytes.toString('utf8', from, from + 40))}`)
  }
}
