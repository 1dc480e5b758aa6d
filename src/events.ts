import { channel } from 'node:diagnostics_channel'
import { textOf } from './messages.js'
import type { LossReason } from './store.js'

interface About {
  readonly namespace: string
  readonly key: string
  readonly store: string
}

/** The facts that metrics and logs are made of. Durations in ms. The key is there for people; never make it a label. */
export type LeaseEvent = About &
  (
    | {
        readonly type: 'attempt'
        readonly outcome: 'granted' | 'held' | 'not-ready' | 'unavailable'
        readonly durationMs: number
        readonly attempt: number
        readonly holder?: string | undefined
        readonly retryAfterMs?: number | undefined
        readonly why?: string
        readonly error?: unknown
      }
    | { readonly type: 'acquired'; readonly fence: bigint; readonly waitedMs: number; readonly attempts: number }
    | { readonly type: 'renewed'; readonly fence: bigint; readonly latencyMs: number }
    /** A renewal gave no verdict: still held, at risk. */
    | { readonly type: 'at-risk'; readonly fence: bigint; readonly remainingMs: number; readonly error: unknown }
    | {
        readonly type: 'lost'
        readonly fence: bigint
        readonly reason: LossReason
        readonly heldForMs: number
        /** How long after its deadline the loss was noticed: the process was blocked, paused or asleep that long. */
        readonly lateByMs: number
      }
    | {
        readonly type: 'released'
        readonly fence: bigint
        readonly outcome: 'released' | 'lost' | 'unknown'
        readonly heldForMs: number
      }
  )

export type LeaseEventType = LeaseEvent['type']
export type Observe = (event: LeaseEvent) => void
/** Those who listen now. */
export type Observers = ReadonlySet<Observe>

/** `node:diagnostics_channel` names: `holdfast:` and the event's type. */
const channels = {
  attempt: channel('holdfast:attempt'),
  acquired: channel('holdfast:acquired'),
  renewed: channel('holdfast:renewed'),
  'at-risk': channel('holdfast:at-risk'),
  lost: channel('holdfast:lost'),
  released: channel('holdfast:released'),
} as const satisfies Record<LeaseEventType, unknown>

/**
 * Tells whoever listens; `make` is called only if someone does. An observer that throws or rejects changes nothing for
 * the lease: its error becomes a process warning.
 */
export function emit<T extends LeaseEventType>(
  observers: Observers,
  type: T,
  make: () => LeaseEvent & { readonly type: T },
): void {
  const listeners = channels[type]
  if (observers.size === 0 && !listeners.hasSubscribers) return
  const event = make()
  listeners.publish(event)
  // Who comes or goes meanwhile hears of the next event, or of no more.
  for (const observe of [...observers]) {
    try {
      // Typed to return nothing, but an async function is accepted for that: its rejection must not end the process.
      const pending: unknown = observe(event)
      if (pending instanceof Promise) pending.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
}

const warn = (error: unknown): void => process.emitWarning(`an observer of holdfast threw: ${textOf(error)}`)
