/**
 * Commands and replies on a connection that a client library has made: logged in, encrypted, on the right database.
 * The library's own way of a command costs more than all else that the store does for a lease (docs/decisions/0005).
 * Protocol: RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/
 */

import type { Asker } from './client.js'

/** The members of a socket that are used. */
export interface Stream {
  write(text: string): unknown
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
}

export class Resp {
  readonly #stream: Stream
  readonly #onNonsense: (error: Error) => void
  /** In the order of sending, which is the order of replies. */
  #asked: Asker[] = []
  /** How many of them are answered. */
  #answered = 0
  #out = ''
  #rest: Buffer | null = null

  /** `onNonsense`: what came is no protocol, and nothing after it can be understood. */
  constructor(stream: Stream, onNonsense: (error: Error) => void) {
    this.#stream = stream
    this.#onNonsense = onNonsense
    stream.on('data', (chunk) => this.#read(chunk))
  }

  /** A lone question is written at once; what is asked while others are under way, together with the rest of its tick. */
  send(args: readonly string[], asker: Asker): void {
    let command = `*${args.length}\r\n`
    for (const arg of args) command += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`
    const isLone = this.#asked.length === 0
    this.#asked.push(asker)
    if (isLone) {
      this.#stream.write(command)
      return
    }
    if (this.#out === '') process.nextTick(() => this.#flush())
    this.#out += command
  }

  #flush(): void {
    const out = this.#out
    this.#out = ''
    this.#stream.write(out)
  }

  #read(chunk: Buffer): void {
    const reader = new Reader(this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk)
    this.#rest = null
    try {
      while (reader.at < reader.bytes.length) {
        const start = reader.at
        const reply = reader.reply()
        if (reply === INCOMPLETE) {
          this.#rest = reader.bytes.subarray(start)
          return
        }
        if (reply !== PUSHED) this.#answer(reply)
      }
    } catch (error) {
      this.#onNonsense(error as Error)
    }
  }

  #answer(reply: unknown): void {
    const asked = this.#asked[this.#answered++]
    if (!asked) throw new Error('Protocol error: a reply that nobody asked for')
    if (this.#answered === this.#asked.length) {
      this.#asked = []
      this.#answered = 0
    }
    if (reply instanceof Error) asked.failed(reply)
    else asked.answered(reply)
  }
}

const INCOMPLETE = Symbol('incomplete')
/** Out of band, of no use here. */
const PUSHED = Symbol('pushed')

const CR = 13
const MINUS = 45
const ZERO = 48

/** Reads replies from one piece of what came, as far as it goes. */
class Reader {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** The next reply: text, number, null, an array of these, or an Error. */
  reply(): unknown {
    const type = this.bytes[this.at++]
    const end = this.bytes.indexOf(CR, this.at)
    // The line feed behind it must be there too.
    if (end === -1 || end + 1 >= this.bytes.length) return INCOMPLETE
    const start = this.at
    this.at = end + 2
    switch (type) {
      case 0x24: // $ bulk string
        return this.#bulk(this.#number(start, end))
      case 0x2b: // + simple string
        return this.bytes.toString('utf8', start, end)
      case 0x2d: // - error
        return replyError(this.bytes.toString('utf8', start, end))
      case 0x3d: {
        // = verbatim string: three letters and a colon before the text
        const text = this.#bulk(this.#number(start, end))
        return typeof text === 'string' ? text.slice(4) : text
      }
      case 0x21: {
        // ! error of any length
        const text = this.#bulk(this.#number(start, end))
        return typeof text === 'string' ? replyError(text) : text
      }
      case 0x3a: // : integer
        return this.#number(start, end)
      case 0x2a: // * array
        return this.#list(this.#number(start, end))
      case 0x7e: // ~ set
        return this.#list(this.#number(start, end))
      case 0x25: // % map: names and values in turn
        return this.#list(2 * this.#number(start, end))
      case 0x5f: // _ null
        return null
      case 0x3e: {
        // > push
        const list = this.#list(this.#number(start, end))
        return list === INCOMPLETE ? INCOMPLETE : PUSHED
      }
      default:
        throw new Error(`Protocol error: a reply of the unknown type ${type}`)
    }
  }

  #bulk(length: number): string | null | typeof INCOMPLETE {
    if (length < 0) return null
    const end = this.at + length
    if (end + 2 > this.bytes.length) return INCOMPLETE
    const text = this.bytes.toString('utf8', this.at, end)
    this.at = end + 2
    return text
  }

  #list(length: number): unknown {
    if (length < 0) return null
    const list: unknown[] = []
    for (let i = 0; i < length; i++) {
      const each = this.at < this.bytes.length ? this.reply() : INCOMPLETE
      if (each === INCOMPLETE) return INCOMPLETE
      list.push(each)
    }
    return list
  }

  #number(start: number, end: number): number {
    const negative = this.bytes[start] === MINUS
    let value = 0
    for (let i = negative ? start + 1 : start; i < end; i++) {
      const digit = (this.bytes[i] as number) - ZERO
      if (digit < 0 || digit > 9) throw new Error('Protocol error: a number was expected')
      value = value * 10 + digit
    }
    return negative ? -value : value
  }
}

const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' })
