import { inDurations, writtenDuration } from './duration.js'

/** What the library says of lengths and of options, as one would write it here. */
export const inOurWords = (message: string): string =>
  inDurations(message)
    .replace(/\bmaxTtlMs (\d+)\b/g, (_, ms) => `max-ttl ${writtenDuration(Number(ms))}`)
    .replaceAll('trustRestart (--trust-restart)', '--trust-restart')
    .replaceAll('allowEviction', 'allow-eviction=yes')
