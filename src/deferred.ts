export interface Deferred {
  readonly promise: Promise<void>
  readonly resolve: () => void
}

/** A promise and the function that resolves it (`Promise.withResolvers` is not in Node 20). */
export function deferred(): Deferred {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
