import { inDurations, writtenDuration } from './duration.js'

/** What the library says of lengths and of options, as one would write it here. */
export const inOurWords = (message: string): string =>
  inDurations(message)
    // A store's own errors begin with where it is, and so does the sentence that they stand in.
    .replace(/^(.+?)( could not .+?: )\1: /, '$1$2')
    .replace(/\bmaxTtlMs (\d+)\b/g, (_, ms) => `max-ttl ${writtenDuration(Number(ms))}`)
    .replaceAll('trustRestart (--trust-restart)', '--trust-restart')
    .replaceAll('allowEviction', 'allow-eviction=yes')
