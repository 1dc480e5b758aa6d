import { usageError } from '../exit.js'
import { redactUrl } from '../redact.js'

export interface Endpoint {
  readonly host: string
  readonly port: number
}

export interface Credentials {
  readonly username: string
  readonly password: string
}

export interface UrlParts {
  readonly endpoints: readonly Endpoint[]
  readonly credentials: Credentials | null
  /** Decoded, without the leading slash; empty when there is none. */
  readonly path: string
  readonly parameters: ReadonlyMap<string, string>
}

export const invalidUrl = (url: string, why: string, options?: ErrorOptions): Error =>
  usageError(`store ${redactUrl(url)}: ${why}`, options)

// No raw @ behind the hosts: it would mean that a password holds a raw /, and what looks like a host is a part of it.
const AUTHORITY = /^[a-z+]+:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^@?#]*))?(?:\?([^@#]*))?$/i
const HOST = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?))(?::(\d+))?$/i

/** `scheme://user:password@host1:port,host2/path?name=value`, the form that every server's URL has. */
export function urlParts(url: string, defaultPort: number): UrlParts {
  const match = AUTHORITY.exec(url)
  if (!match) {
    const hint = 'in a user name or password, write @ as %40, / as %2F, : as %3A, ? as %3F, # as %23'
    throw invalidUrl(url, `expected scheme://host:port/…; ${hint}`)
  }
  const [, userinfo, hosts = '', path = '', query = ''] = match
  return {
    endpoints: hosts === '' ? [] : hosts.split(',').map((host) => endpoint(url, host, defaultPort)),
    credentials: userinfo === undefined ? null : credentials(url, userinfo),
    path: decode(url, path),
    parameters: parametersOf(url, query),
  }
}

function parametersOf(url: string, query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (parameters.has(name)) throw invalidUrl(url, `the parameter ${JSON.stringify(name)} is given twice`)
    parameters.set(name, value)
  }
  return parameters
}

function endpoint(url: string, text: string, defaultPort: number): Endpoint {
  const match = HOST.exec(text)
  const host = match?.[1] ?? match?.[2]
  if (!match || host === undefined)
    throw invalidUrl(url, 'what follows // must be host or host:port, several with commas between')
  const port = match[3] === undefined ? defaultPort : Number(match[3])
  if (port < 1 || port > 65_535) throw invalidUrl(url, 'a port lies between 1 and 65535')
  return { host, port }
}

function credentials(url: string, userinfo: string): Credentials {
  const colon = userinfo.indexOf(':')
  const [username, password] = colon === -1 ? [userinfo, ''] : [userinfo.slice(0, colon), userinfo.slice(colon + 1)]
  return { username: decode(url, username), password: decode(url, password) }
}

export function decode(url: string, text: string): string {
  let decoded: string
  try {
    decoded = decodeURIComponent(text)
  } catch (cause) {
    throw invalidUrl(url, 'a % must be followed by two hex digits of UTF-8 (write a % itself as %25)', { cause })
  }
  if (decoded.includes('\0')) throw invalidUrl(url, 'it must not contain NUL')
  return decoded
}
