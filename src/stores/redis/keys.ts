/** How names become Redis keys. A wire contract: other versions and other clients meet at these keys. */
import type { Key } from '../../store.js'

/**
 * Injective, and close to what was given. Braces are escaped so that no name chooses a hash slot; the colon only in a
 * namespace, so that the first one behind it ends it (B017, B159, B184).
 */
const escapeName = (text: string): string => text.replace(/[%{}]/g, percent)
const escapeNamespace = (text: string): string => text.replace(/[%{}:]/g, percent)
const percent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
const unescaped = (text: string): string =>
  text.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
const SPECIAL = /[%{}]/
const SPECIAL_IN_NAMESPACE = /[%{}:]/

export interface Counter {
  readonly value: string
  readonly born: string
}

export class KeySpace {
  /** The one counter of fences, and the `run_id` of the server life since which nothing acknowledged can have been forgotten. */
  readonly counter: Counter
  /** The channel on which revocations are told; the message is the key of the lease. */
  readonly revoked: string
  readonly #leases: string

  constructor(prefix: string) {
    this.counter = { value: `${prefix}:fence`, born: `${prefix}:born` }
    this.revoked = `${prefix}:revoked`
    this.#leases = `${prefix}:lease:`
  }

  /** The key of a lease, and the channel on which its end is told. */
  lease({ namespace, name }: Key): string {
    return this.#of(namespace) + (SPECIAL.test(name) ? escapeName(name) : name)
  }

  /** A pattern for SCAN that finds the leases of a namespace whose name starts with `prefix`, and no others. */
  pattern(namespace: string, prefix: string): string {
    return `${(this.#of(namespace) + escapeName(prefix)).replace(/[\\*?[\]]/g, '\\$&')}*`
  }

  /** The name in a key that the pattern of this namespace has found. */
  nameIn(namespace: string, lease: string): string {
    return unescaped(lease.slice(this.#of(namespace).length))
  }

  #of(namespace: string): string {
    return `${this.#leases}${SPECIAL_IN_NAMESPACE.test(namespace) ? escapeNamespace(namespace) : namespace}:`
  }
}

/** Owners are told apart by their text up to the next blank. What this makes is never the `%` of a tombstone. */
export const ownerField = (owner: string): string => (/^[\w-]+$/.test(owner) ? owner : encodeURIComponent(owner))

/** Labels stand last in the value and may hold anything but what ends a line of an answer. */
export const labelField = (label: string | undefined): string =>
  label === undefined ? '-' : `=${/[%\n]/.test(label) ? label.replace(/[%\n]/g, percent) : label}`
export const labelIn = (field: string): string | undefined =>
  field.startsWith('=') ? unescaped(field.slice(1)) : undefined
