import * as check from '../../checks.js'
import { createLeases, type Leases } from '../../leases.js'
import type { Store } from '../../store.js'
import type { Parsed } from '../args.js'
import { usageError } from '../exit.js'
import { openStore, type Target } from '../target/connect.js'
import { writtenDuration } from '../text/duration.js'

const FLAGS: Record<string, string> = {
  ttlMs: '--ttl',
  lockDelayMs: '--lock-delay',
  minHoldMs: '--min-hold',
  namespace: '--namespace',
  label: '--label',
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

export function keyOf(parsed: Parsed): string {
  const key = parsed.positionals[0] ?? ''
  asUsage(() => check.key(key))
  return key
}

/** For commands that hold nothing themselves. */
export async function withLeases<T>(target: Target, work: (leases: Leases, store: Store) => Promise<T>): Promise<T> {
  const { namespace } = target
  const store = await openStore(target)
  const leases = asUsage(() => createLeases(store, namespace === undefined ? {} : { namespace }))
  try {
    return await work(leases, store)
  } finally {
    // Nothing is held here, so nothing can be left behind; the error of the work is the one that counts.
    await leases.close().catch(() => {})
  }
}
