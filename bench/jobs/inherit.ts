import type { Contestant } from '../contestants/contestant.js'

/** Waits for all of these keys at once: when each was got, in milliseconds of the wall clock, which the server reads too. */
export function inherit(contestant: Contestant, { keys }: { readonly keys: readonly string[] }): Promise<number[]> {
  return Promise.all(
    keys.map(async (key) => {
      await contestant.acquire(key)
      return Date.now()
    }),
  )
}
