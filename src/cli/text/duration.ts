import { usageError } from '../exit.js'

/** Node's timers fire at once beyond this: almost 25 days. */
const MAX_MS = 2 ** 31 - 1
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const
const UNIT_NAMES = 'ms, s, m, h or d'
const EXAMPLES = 'such as 500ms, 10s, 5m, 1h30m or 2d'
const TEXT = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/
const DECIMAL = /^(\d+)\.(\d{1,9})(d|h|m|s)$/

/**
 * A length of time as text, in ms. Each unit at most once, from the greatest down; a unit is required, since a bare
 * number is read as seconds by one half of the world and as milliseconds by the other.
 */
export function parseDuration(option: string, text: string): number {
  return parse(option, text, '')
}

/** A duration, or `forever`. */
export function parseDurationOrForever(option: string, text: string): number {
  return text === 'forever' ? Number.POSITIVE_INFINITY : parse(option, text, ', or forever')
}

function parse(option: string, text: string, or: string): number {
  const ms = fromDecimal(text) ?? fromParts(text)
  if (ms === null) {
    const bare = /^\d+$/.test(text) ? ` (for seconds write ${text}s)` : ''
    throw usageError(
      `${option} must be a duration with its unit (${UNIT_NAMES}), ${EXAMPLES}${or}, but got ${JSON.stringify(text)}${bare}`,
    )
  }
  if (!Number.isInteger(ms)) throw usageError(`${option} must be whole milliseconds, but got ${JSON.stringify(text)}`)
  if (ms > MAX_MS) {
    throw usageError(
      `${option} must be at most ${writtenDuration(MAX_MS)} (2^31-1 ms)${or}, but got ${JSON.stringify(text)}`,
    )
  }
  return ms
}

function fromParts(text: string): number | null {
  const match = TEXT.exec(text)
  if (!match || text === '') return null
  return UNITS.reduce((sum, [, length], index) => sum + Number(match[index + 1] ?? 0) * length, 0)
}

/** `1.5s`. In whole numbers throughout: 4.35 * 1000 is not 4350 in floating point. */
function fromDecimal(text: string): number | null {
  const match = DECIMAL.exec(text)
  if (!match) return null
  const [, whole = '', fraction = '', unit] = match
  const length = UNITS.find(([name]) => name === unit)?.[1] ?? 0
  const scaled = BigInt(fraction) * BigInt(length)
  const scale = 10n ** BigInt(fraction.length)
  return scaled % scale === 0n ? Number(whole) * length + Number(scaled / scale) : Number.NaN
}

/** The same length as one would give it to an option: `1m30s500ms`, `24d20h31m23s647ms`, `0s`. */
export function writtenDuration(ms: number): string {
  let rest = ms
  const parts = UNITS.map(([unit, length]) => {
    const count = Math.floor(rest / length)
    rest -= count * length
    return count === 0 ? '' : `${count}${unit}`
  })
  return parts.join('') || '0s'
}

/** For people: `850ms`, `12s`, `3m 5s`, `2h 4m`, `6d 3h`. */
export function formatDuration(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'forever'
  if (Math.round(ms) < 1_000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 10_000) return `${Math.floor(Math.round(ms) / 100) / 10}s`
  const seconds = Math.floor(ms / 1_000)
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  const parts = [`${days}d`, `${hours}h`, `${minutes}m`, `${seconds % 60}s`]
  const first = [days, hours, minutes, 1].findIndex((each) => each > 0)
  return parts
    .slice(first, first + 2)
    .filter((part, index) => index === 0 || !part.startsWith('0'))
    .join(' ')
}

/** The library counts in ms, people do not: `no answer within 1666 ms` becomes `no answer within 1.6s`. */
export const inDurations = (message: string): string =>
  message.replace(/\b(\d+) ms\b/g, (_, ms) => formatDuration(Number(ms)))
