import type { Held } from './contestant.js'

/** A lease from a library that gives one only for as long as some work takes. */
export function heldWhile(using: (work: () => Promise<void>) => Promise<unknown>): Promise<Held> {
  return new Promise((resolve, reject) => {
    const end = using(
      () =>
        new Promise((finish) => {
          resolve({
            release() {
              finish()
              return end
            },
          })
        }),
    )
    end.catch(reject)
  })
}
