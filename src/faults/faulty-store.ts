import { setMaxListeners } from 'node:events'
import { type Clock, systemEnvironment } from '../environment.js'
import { StoreError } from '../errors.js'
import type { CallOptions, ClaimRef, Key, Store } from '../store.js'
import { breakOff, delayReply, delayRequest, type Fault, hang, loseReply, loseRequest, pass, refuse } from './fault.js'

/** What a fault can happen to. `hint`: a notification on its way to a watcher. */
export type Operation = 'acquire' | 'renew' | 'release' | 'inspect' | 'list' | 'revoke' | 'watch' | 'hint' | 'probe'

/** The fault for the `nth` call of this operation, counted from 1. */
export type FaultPlan = (operation: Operation, nth: number, key: Key | undefined, owner: string | undefined) => Fault

export interface FaultOptions {
  /** Whose timers delay things. Default the system's. */
  readonly clock?: Clock
  /** Default: everything passes. */
  readonly plan?: FaultPlan
}

/** A store to which faults happen. Each command below replaces the plan, for the operations named or for all. */
export interface FaultyStore extends Store {
  plan(plan: FaultPlan): void
  hang(...only: Operation[]): void
  loseRequests(...only: Operation[]): void
  loseReplies(...only: Operation[]): void
  delayRequests(ms: number, ...only: Operation[]): void
  delayReplies(ms: number, ...only: Operation[]): void
  /** `none`: refused · `unknown`: the connection breaks before the store has seen it. */
  fail(effect: 'none' | 'unknown', ...only: Operation[]): void
  /** Everything passes again, and what hung arrives now. */
  heal(): void
  /** How often the operation was called. */
  count(operation: Operation): number
  /** Calls that have not settled, and perhaps never will. */
  readonly open: number
}

const never = new AbortController().signal
// Everything under way listens to it at once, of which Node would warn.
setMaxListeners(0, never)

/** The same store over a bad connection. Optional members are there where the inner store has them. */
export function faultyStore(store: Store, options: FaultOptions = {}): FaultyStore {
  const clock = options.clock ?? systemEnvironment().clock
  const counts = new Map<Operation, number>()
  let plan: FaultPlan = options.plan ?? (() => pass)
  let hung: (() => void)[] = []
  let open = 0

  const faultFor = (operation: Operation, key?: Key, owner?: string): Fault => {
    const nth = (counts.get(operation) ?? 0) + 1
    counts.set(operation, nth)
    return plan(operation, nth, key, owner)
  }
  const later = (ms: number, run: () => void) => void clock.timer(ms, run, { keepAlive: true })

  const through = <C extends CallOptions, T>(
    operation: Operation,
    ref: Key | ClaimRef | undefined,
    call: C,
    execute: (call: C) => Promise<T>,
  ): Promise<T> => {
    const key = ref && 'key' in ref ? ref.key : ref
    const fault = faultFor(operation, key, ref && 'owner' in ref ? ref.owner : undefined)
    // What is on its way arrives, although nobody waits for it any more.
    const underWay = { ...call, signal: never }
    open++
    const answer = new Promise<T>((resolve, reject) => {
      const arrive = () => execute(underWay).then(resolve, reject)
      const unheard = () => execute(underWay).catch(() => {})
      switch (fault.kind) {
        case 'pass':
          return execute(call).then(resolve, reject)
        case 'delay-request':
          return later(fault.ms, arrive)
        case 'delay-reply':
          execute(underWay).then(
            (value) => later(fault.ms, () => resolve(value)),
            (error) => later(fault.ms, () => reject(error)),
          )
          return
        case 'lose-request':
          return
        case 'lose-reply':
          return unheard()
        case 'hang':
          hung.push(arrive)
          return
        case 'fail': {
          const fail = () => reject(new StoreError(`${operation} failed on purpose`, fault.effect))
          return fault.executed ? unheard().then(fail) : fail()
        }
        case 'duplicate':
          later(fault.ms, unheard)
          return arrive()
      }
    })
    const close = () => void open--
    answer.then(close, close)
    return answer
  }

  /** A hint is a message without an answer: lost, late, twice, or there. */
  const hintThrough = (ref: ClaimRef, onHint: () => void) => () => {
    const fault = faultFor('hint', ref.key, ref.owner)
    if (fault.kind === 'pass' || fault.kind === 'duplicate') onHint()
    if (fault.kind === 'hang') hung.push(onHint)
    if ('ms' in fault) later(fault.ms, onHint)
  }

  const always = (fault: Fault, only: readonly Operation[]) => {
    plan = (operation) => (only.length === 0 || only.includes(operation) ? fault : pass)
  }

  const faulty: FaultyStore = {
    name: `faulty(${store.name})`,
    ...(store.location !== undefined && { location: store.location }),
    get traits() {
      return store.traits
    },
    acquire: (claim, call) => through('acquire', claim, call, (how) => store.acquire(claim, how)),
    renew: (held, call) => through('renew', held, call, (how) => store.renew(held, how)),
    release: (ref, call) => through('release', ref, call, (how) => store.release(ref, how)),
    inspect: (key, call) => through('inspect', key, call, (how) => store.inspect(key, how)),
    probe: (call) => through('probe', undefined, call, (how) => store.probe(how)),
    close: () => store.close(),

    plan: (next) => {
      plan = next
    },
    hang: (...only) => always(hang, only),
    loseRequests: (...only) => always(loseRequest, only),
    loseReplies: (...only) => always(loseReply, only),
    delayRequests: (ms, ...only) => always(delayRequest(ms), only),
    delayReplies: (ms, ...only) => always(delayReply(ms), only),
    fail: (effect, ...only) => always(effect === 'none' ? refuse : breakOff(false), only),
    heal: () => {
      plan = () => pass
      const arriving = hung
      hung = []
      for (const arrive of arriving) arrive()
    },
    count: (operation) => counts.get(operation) ?? 0,
    get open() {
      return open
    },
  }
  const { list, revoke, watch } = store
  if (revoke)
    faulty.revoke = (key, how, call) => through('revoke', key, call, (sent) => revoke.call(store, key, how, sent))
  if (watch) {
    faulty.watch = (ref, onHint, call) => {
      const hint = hintThrough(ref, onHint)
      return through('watch', ref, call, (how) => watch.call(store, ref, hint, how))
    }
  }
  if (list) {
    faulty.list = async function* (namespace, prefix, call) {
      await through('list', undefined, call, async () => {})
      yield* list.call(store, namespace, prefix, call)
    }
  }
  return faulty
}
