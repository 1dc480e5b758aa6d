/** Who waits on a signal, for each signal that somebody waits on. */
const waiting = new WeakMap<AbortSignal, { readonly callbacks: Set<() => void>; readonly listener: () => void }>()

/**
 * Calls back when the signal aborts, until the returned function is called. One listener for each signal, however many
 * wait on it: a signal for a whole service may cancel thousands of waits, and Node warns beyond ten listeners.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let entry = waiting.get(signal)
  if (!entry) {
    const callbacks = new Set<() => void>()
    const listener = () => {
      for (const each of [...callbacks]) each()
    }
    entry = { callbacks, listener }
    waiting.set(signal, entry)
    signal.addEventListener('abort', listener)
  }
  const { callbacks, listener } = entry
  callbacks.add(callback)
  return () => {
    callbacks.delete(callback)
    if (callbacks.size > 0 || waiting.get(signal)?.callbacks !== callbacks) return
    waiting.delete(signal)
    signal.removeEventListener('abort', listener)
  }
}
