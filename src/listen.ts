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
  onArmed?: () => void,
): Watch | undefined {
  if (!store.watch) return undefined
  const listening = new Listening()
  listening.begin(store, ref, onHint, onArmed)
  return listening
}

class Listening implements Watch {
  readonly #scope = new CallScope()
  #inner: Watch | undefined

  begin(store: Store, ref: ClaimRef | HeldRef, onHint: () => void, onArmed: (() => void) | undefined): void {
    const scope = this.#scope
    const hint = () => scope.aborted || onHint()
    call(() => store.watch?.(ref, hint, scope) ?? Promise.reject()).then(
      (watch) => {
        if (scope.aborted) return closed(watch)
        this.#inner = watch
        onArmed?.()
      },
      () => {},
    )
  }

  close(): void {
    this.#scope.abort()
    closed(this.#inner)
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
