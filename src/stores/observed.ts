import { type Environment, systemEnvironment } from '../environment.js'
import { StoreError } from '../errors.js'
import type { Key, Store } from '../store.js'

/** One call to a store, reported once it has ended. Never carries an owner token. */
export interface StoreCall {
  readonly operation: 'acquire' | 'renew' | 'release' | 'inspect' | 'list' | 'revoke' | 'watch' | 'probe' | 'close'
  /** Absent where the call is not about one key. */
  readonly key?: Key
  readonly durationMs: number
  /** The verdict: its `kind`, or what the call has in its place (`held` or `free` for `inspect`, `done` elsewhere). */
  readonly outcome?: string
  /** In place of `outcome` when there was no verdict; an error that does not say counts as `unknown`. */
  readonly effect?: StoreError['effect']
  readonly error?: unknown
}

/**
 * The same store, with every call reported to `observe`. An observer that throws or rejects changes no outcome; its error is
 * dropped. Optional members are there where the inner store has them.
 */
export function observedStore(
  store: Store,
  observe: (call: StoreCall) => void,
  options: { readonly environment?: Environment } = {},
): Store {
  if (typeof store?.acquire !== 'function') throw new TypeError('observedStore: the first argument must be a store')
  if (typeof observe !== 'function') throw new TypeError('observedStore: the second argument must be a function')
  const { clock } = options.environment ?? systemEnvironment()
  const begin = (operation: StoreCall['operation'], key?: Key) => {
    const beganAt = clock.now()
    return (result: Pick<StoreCall, 'outcome' | 'effect' | 'error'>) => {
      try {
        const call = { operation, ...(key && { key }), durationMs: clock.now() - beganAt, ...result }
        const pending: unknown = observe(call)
        if (pending instanceof Promise) pending.catch(() => {})
      } catch {
        // Watching must never become part of what is watched.
      }
    }
  }
  const report = async <T>(
    call: StoreCall['operation'],
    key: Key | undefined,
    ask: () => Promise<T>,
    name: (answer: T) => string,
  ) => {
    const end = begin(call, key)
    try {
      const answer = await ask()
      end({ outcome: name(answer) })
      return answer
    } catch (error) {
      end(failure(error))
      throw error
    }
  }
  const kind = (answer: { readonly kind: string }) => answer.kind
  const done = () => 'done'

  const observed: Store = {
    name: store.name,
    ...(store.location !== undefined && { location: store.location }),
    // Read through, since a store may learn its traits when it connects.
    get traits() {
      return store.traits
    },
    acquire: (claim, call) => report('acquire', claim.key, () => store.acquire(claim, call), kind),
    renew: (held, call) => report('renew', held.key, () => store.renew(held, call), kind),
    release: (ref, call) => report('release', ref.key, () => store.release(ref, call), kind),
    inspect: (key, call) =>
      report(
        'inspect',
        key,
        () => store.inspect(key, call),
        (holding) => (holding ? 'held' : 'free'),
      ),
    probe: (call) => report('probe', undefined, () => store.probe(call), done),
    close: () => report('close', undefined, () => store.close(), done),
  }
  const { list, revoke, watch } = store
  if (revoke)
    observed.revoke = (key, how, call) => report('revoke', key, () => revoke.call(store, key, how, call), kind)
  if (watch)
    observed.watch = (ref, onHint, call) => report('watch', ref.key, () => watch.call(store, ref, onHint, call), done)
  if (list) {
    observed.list = async function* (namespace, prefix, call) {
      const end = begin('list')
      let result: Parameters<typeof end>[0] = { outcome: 'done' }
      try {
        yield* list.call(store, namespace, prefix, call)
      } catch (error) {
        result = failure(error)
        throw error
      } finally {
        end(result)
      }
    }
  }
  return observed
}

const failure = (error: unknown) => ({
  effect: error instanceof StoreError ? error.effect : ('unknown' as const),
  error,
})
