import { usageError } from './exit.js'
import { writtenDuration } from './text/duration.js'

const FLAGS: Record<string, string> = {
  ttlMs: '--ttl',
  lockDelayMs: '--lock-delay',
  minHoldMs: '--min-hold',
  namespace: '--namespace',
  label: '--label',
  maxTtlMs: 'max-ttl',
}

/** The library refuses options with Range- and TypeErrors in its own words; here they are flags. */
export function asUsage<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error
    throw usageError(inOurWords(error.message), { cause: error })
  }
}

/** Options become flags, and milliseconds what one would write. */
function inOurWords(message: string): string {
  const written = /^\w+Ms\b/.test(message)
    ? message
        .replace('a whole number of milliseconds ', '')
        .replace(/(?<![\w.])\d+(?![\w.])/g, (ms) => writtenDuration(Number(ms)))
    : message
  return written.replace(/\b[a-zA-Z]+\b/g, (word) => FLAGS[word] ?? word)
}
