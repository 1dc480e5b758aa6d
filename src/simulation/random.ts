import type { Random } from '../environment.js'

const ID_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** As long as the text of 160 bits. */
const ID_LENGTH = 27

/** Randomness that comes again with its seed: for simulations, never for secrets. */
export class SeededRandom implements Random {
  readonly seed: string
  #state: number

  constructor(seed: string | number) {
    this.seed = String(seed)
    this.#state = hash(this.seed)
  }

  /** Mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  id(): string {
    return Array.from({ length: ID_LENGTH }, () => ID_ALPHABET[this.below(64)]).join('')
  }

  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }

  /** Randomness of its own that depends on the seed and the name only, not on what was drawn before. */
  fork(name: string): SeededRandom {
    return new SeededRandom(`${this.seed}/${name}`)
  }
}

/** FNV-1a, then mixed so that seeds that differ in one digit start far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return value ^ (value >>> 16)
}
