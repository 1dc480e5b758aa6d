import { call } from './attempt.js'
import { CallScope } from './scope.js'
import type { ClaimRef, HeldRef, Store, Watch } from './store.js'

/**
 * Listens for hints without waiting for the store to be armed. Hints are speed, never correctness: where a store has
 * none, or fails to arm, polling goes on alone. Undefined where the store cannot notify.
 */
export function listen(
  store: Store,
  ref: ClaimRef | HeldRef,
  onHint: () => void,
  onArmed: () => void = () => {},
): Watch | undefined {
  const arm = store.watch?.bind(store)
  if (!arm) return undefined
  const scope = new CallScope()
  let inner: Watch | undefined
  call(() => arm(ref, () => scope.aborted || onHint(), scope)).then(
    (watch) => {
      if (scope.aborted) return closed(watch)
      inner = watch
      onArmed()
    },
    () => {},
  )
  return {
    close() {
      scope.abort()
      closed(inner)
    },
  }
}

/** Whoever stops listening is in the midst of something that matters more. */
function closed(watch: Watch | undefined): void {
  try {
    watch?.close()
  } catch {
    // A watch that cannot be closed is of no use, and does no harm: its hints are ignored.
  }
}
