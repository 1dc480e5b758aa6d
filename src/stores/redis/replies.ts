/** What a server's reply means, whichever client library and protocol version brought it (B107). */
import { StoreError } from '../../errors.js'

/** Text of a reply that is text in one library, bytes in another, a number in a third. */
export function textOf(reply: unknown): string {
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number' || typeof reply === 'bigint') return String(reply)
  if (reply instanceof Uint8Array) return Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength).toString()
  // Verbatim strings, and texts wrapped by a type mapping.
  if (reply instanceof String) return String(reply)
  throw nonsense(reply)
}

export function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply
  if (reply instanceof Map) return [...reply].flat()
  if (reply instanceof Set) return [...reply]
  if (typeof reply === 'object' && reply !== null && !(reply instanceof Error)) return Object.entries(reply).flat()
  throw nonsense(reply)
}

/** What no script of ours answers: whoever did is no Redis, or changes replies on their way. Never a yes. */
export function nonsense(reply: unknown): StoreError {
  const shown = typeof reply === 'string' ? JSON.stringify(reply.slice(0, 60)) : typeof reply
  return new StoreError(`the server answered nonsense (${shown}): is it Redis?`, 'unknown')
}

/** The code of an error that the server itself answered, or `null`: a broken connection, a client's own error. */
export function codeOf(error: unknown): string | null {
  if (error instanceof StoreError) return codeOf(error.cause)
  return error instanceof Error ? (/^-?([A-Z][A-Z0-9_]+)(?: |$)/.exec(error.message)?.[1] ?? null) : null
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  const message = error instanceof Error ? error.message : String(error)
  // The libraries ask for a report to their authors.
  if (/^(?:Unknown RESP type|Protocol error)/.test(message)) return 'what answers there is no Redis'
  // A server repeats what it does not know, with owner tokens and passwords in it.
  return message.replace(/, with args beginning with:.*/s, '')
}

/**
 * What may be shown of a client library's error: they carry the whole command, with owner tokens and passwords in it.
 */
export function withoutSecrets(error: unknown): Error {
  if (error instanceof StoreError) return error
  const name = error instanceof Error ? error.name : 'Error'
  const bare = Object.assign(new Error(messageOf(error)), { name })
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return code === undefined ? bare : Object.assign(bare, { code })
}

const DEMOTED: ReadonlySet<string> = new Set(['READONLY', 'MASTERDOWN'])

/** It is no master any more, and has to be looked at anew before it is asked again. */
export const isDemoted = (error: unknown): boolean => DEMOTED.has(codeOf(error) ?? '')

/** Nothing was done, since nobody is logged in: long commands are cut short before that is said. */
export const isLoggedOut = (error: unknown): boolean =>
  codeOf(error) === 'NOAUTH' || (error instanceof Error && error.message.includes('Protocol error: unauthenticated'))

/** What a server says in place of carrying a command out. Anything else may come from somebody in between, or halfway. */
const REFUSALS: Readonly<Record<string, string>> = {
  LOADING: 'it is still loading its data',
  BUSY: 'a script of somebody keeps it busy',
  READONLY: 'it is a replica by now',
  OOM: 'its memory is full (maxmemory)',
  MISCONF: 'it cannot save to disk and refuses writes',
  NOREPLICAS: 'too few replicas are connected (min-replicas-to-write)',
  MASTERDOWN: 'it is a replica without its master',
  CLUSTERDOWN: 'its cluster is down',
  MOVED: 'it is a node of a cluster, and the key belongs to another',
  CROSSSLOT: 'it is a node of a cluster',
  NOAUTH: 'it wants a password',
  WRONGPASS: 'the user name or the password is wrong',
  NOPERM: 'the user may not do that',
  NOSCRIPT: 'it does not know the script',
  WRONGTYPE: 'the key holds something else',
}

/** Why a connection is over. `heard`: the server had answered on it before. */
export function endText(error: unknown, heard: boolean): string {
  const message = messageOf(error)
  const meaning = REFUSALS[codeOf(error) ?? '']
  if (meaning) return `refused: ${meaning} (${message})`
  if (heard || !/^(?:read|write) E|closed/.test(message)) return message
  return `hung up before it answered (${message}): it has too many clients, TLS is not set as it wants it, or it is no Redis`
}

/**
 * The error for a whole command. What a server refuses was not carried out; an error from within a script may have come after a
 * write; and what the connection, or a proxy with an `ERR` of its own, says leaves everything open (B054, B099).
 */
export function storeError(error: unknown, place: string): StoreError {
  if (error instanceof StoreError) return error
  const message = messageOf(error)
  const code = codeOf(error)
  if (code === null) return new StoreError(`${place}: ${message}`, 'unknown', { cause: withoutSecrets(error) })
  const options = { cause: withoutSecrets(error) }
  if (code === 'NOPERM') return new StoreError(`${place}: ${deniedText(null, message)}`, 'none', options)
  const meaning = REFUSALS[code]
  const effect = meaning === undefined || message.includes('script:') ? 'unknown' : 'none'
  return new StoreError(`${place} refused: ${meaning ? `${meaning} ` : ''}(${message})`, effect, options)
}

/**
 * The error for one item of a script: `e COMMAND message`. Its one write is its last command, so it had no effect. The cause is what the
 * server said.
 */
export function itemError(answer: string, place: string): StoreError {
  const [, command = '', message = ''] = /^e (\S+) (.*)$/s.exec(answer) ?? []
  const cause = new Error(message)
  const denied = /NOPERM|can't run this command|can't access at least one of the keys/.test(message)
  const meaning = REFUSALS[codeOf(cause) ?? '']
  const text = denied ? deniedText(command, message) : `refused ${command}: ${meaning ? `${meaning} ` : ''}(${message})`
  return new StoreError(`${place}${denied ? ':' : ''} ${text}`, 'none', { cause })
}

/** Which right the user lacks. `command`: where the message may not name it; a script is told only that it may not. */
function deniedText(command: string | null, message: string): string {
  const named = command ?? /the '([^']+)' command/.exec(message)?.[1]?.toUpperCase() ?? null
  const what = /\bkeys?\b/.test(message)
    ? `use the store's keys${named ? ` with ${named}` : ''}`
    : named
      ? `run ${named}`
      : 'do that'
  return `its user may not ${what}; what the user needs is in docs/stores/redis.md (${message})`
}
