/** Checks of what callers hand in. A message says option, expectation, value. Wrong kind: TypeError; wrong value: RangeError. */

export const show = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'object' && value !== null ? `an ${Array.isArray(value) ? 'array' : 'object'}` : String(value)
}
const wrongKind = (option: string, expected: string, value: unknown) =>
  new TypeError(`${option} must be ${expected}, but got ${show(value)}`)
const wrongValue = (option: string, expected: string, value: unknown) =>
  new RangeError(`${option} must be ${expected}, but got ${show(value)}`)

/** Refuses names that nobody reads: a misspelt option must not be a silent default. */
export function known(where: string, given: unknown, names: readonly string[]): void {
  if (typeof given !== 'object' || given === null) throw wrongKind(`options of ${where}`, 'an object', given)
  for (const name of Object.keys(given)) {
    if (!names.includes(name))
      throw new TypeError(`${where} knows no option ${JSON.stringify(name)}; it knows ${names.join(', ')}`)
  }
}

/** Whole milliseconds, 0 allowed. */
export function duration(option: string, value: unknown, max: number, min = 0, or = ''): asserts value is number {
  const expected = `a whole number of milliseconds between ${min} and ${max}${or}`
  if (typeof value !== 'number') throw wrongKind(option, expected, value)
  if (!Number.isInteger(value) || value < min || value > max) throw wrongValue(option, expected, value)
}

/** Whole milliseconds, at least 1. */
export function length(option: string, value: unknown, max: number): asserts value is number {
  duration(option, value, max, 1)
}

export function ratio(option: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw wrongKind(option, 'a number from 0 to 0.5', value)
  if (!(value >= 0 && value <= 0.5)) throw wrongValue(option, 'a number from 0 to 0.5', value)
}

export function fence(option: string, value: unknown, max: bigint): asserts value is bigint {
  if (typeof value !== 'bigint') throw wrongKind(option, 'a bigint', value)
  if (value < 0n || value > max) throw wrongValue(option, `between 0n and ${max}n`, value)
}

/** Well-formed, not empty, at most `maxBytes` of UTF-8. Lone surrogates have no UTF-8 and would meet as one key. */
export function text(option: string, value: unknown, maxBytes: number): asserts value is string {
  if (typeof value !== 'string') throw wrongKind(option, 'a string', value)
  if (value === '') throw wrongValue(option, 'a non-empty string', value)
  if (!value.isWellFormed()) throw wrongValue(option, 'well-formed Unicode (no lone surrogates)', value)
  // No character takes more than three bytes for each unit of its UTF-16.
  if (value.length * 3 <= maxBytes) return
  const bytes = Buffer.byteLength(value)
  if (bytes > maxBytes) throw new RangeError(`${option} must be at most ${maxBytes} bytes of UTF-8, but got ${bytes}`)
}

/** A key's name. */
export function key(value: unknown): asserts value is string {
  text('key', value, 1024)
}

export function boolean(option: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw wrongKind(option, 'true or false', value)
}

/** A store is anything with the members of the seam; what it does is for the conformance suite to say. */
export function store(option: string, value: unknown): void {
  const members = ['traits', 'acquire', 'renew', 'release', 'inspect', 'close']
  if (typeof value !== 'object' || value === null || !members.every((member) => member in value)) {
    throw wrongKind(option, `a store, such as sqliteStore(…) (an object with ${members.join(', ')})`, value)
  }
}

export function environment(option: string, value: unknown): void {
  const parts = ['clock', 'host', 'random']
  if (typeof value !== 'object' || value === null || !parts.every((part) => part in value)) {
    throw wrongKind(option, `an object with ${parts.join(', ')}`, value)
  }
}

export function callable(option: string, value: unknown): void {
  if (typeof value !== 'function') throw wrongKind(option, 'a function', value)
}

export function abortSignal(option: string, value: unknown): asserts value is AbortSignal {
  if (!(value instanceof AbortSignal)) throw wrongKind(option, 'an AbortSignal', value)
}

export function life(option: string, value: unknown): void {
  if (value === 'outlives-process') return
  const pids = typeof value === 'object' && value !== null && 'pids' in value ? value.pids : undefined
  if (!Array.isArray(pids) || pids.length === 0 || !pids.every((pid) => Number.isInteger(pid) && pid > 0)) {
    throw wrongKind(option, '"outlives-process" or { pids: [positive whole numbers] }', value)
  }
}
