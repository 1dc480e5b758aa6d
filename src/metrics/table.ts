import type { LeaseEvent } from '../events.js'
import type { LossReason } from '../store.js'

/** One metric, in base units. Names, labels and types are a contract with dashboards. */
export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Its label, with every value that it can have. */
  readonly label?: { readonly name: string; readonly values: readonly string[] }
  /** Upper bounds. */
  readonly buckets?: readonly number[]
}

// As records, so that a new reason or outcome does not compile until it is here.
const REASONS: Record<LossReason, true> = {
  expired: true,
  taken: true,
  missing: true,
  session: true,
  revoked: true,
  'max-hold': true,
  closed: true,
}
const OUTCOMES: Record<(LeaseEvent & { readonly type: 'attempt' })['outcome'], true> = {
  granted: true,
  held: true,
  'not-ready': true,
  unavailable: true,
}

/** What programs and the command line report, under the same names. */
export const METRICS = {
  acquired: {
    name: 'holdfast_lease_acquired_total',
    type: 'counter',
    help: 'Leases acquired.',
  },
  lost: {
    name: 'holdfast_lease_lost_total',
    type: 'counter',
    help: 'Leases lost, by reason.',
    label: { name: 'reason', values: Object.keys(REASONS) },
  },
  attempts: {
    name: 'holdfast_acquire_attempts_total',
    type: 'counter',
    help: 'Requests for a lease, by outcome. A wait is made of several.',
    label: { name: 'outcome', values: Object.keys(OUTCOMES) },
  },
  held: {
    name: 'holdfast_leases_held',
    type: 'gauge',
    help: 'Leases held now.',
  },
  // A call to a store may take 5 s at most.
  heartbeat: {
    name: 'holdfast_heartbeat_latency_seconds',
    type: 'histogram',
    help: 'Time from a renewal to its answer, for renewals that succeeded.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  },
  wait: {
    name: 'holdfast_acquire_wait_seconds',
    type: 'histogram',
    help: 'Time that was waited for a lease, for waits that ended with one.',
    buckets: [0.001, 0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400],
  },
  hold: {
    name: 'holdfast_lease_hold_seconds',
    type: 'histogram',
    help: 'Time that a lease was held, to its release or loss.',
    buckets: [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400],
  },
} as const satisfies Record<string, Metric>

/** One count or one measurement. */
export type Sample =
  | { readonly metric: 'acquired' }
  | { readonly metric: 'lost' | 'attempts'; readonly label: string }
  | { readonly metric: 'heartbeat' | 'wait' | 'hold'; readonly seconds: number }

/** What an event adds to the metrics. Each lease is acquired once, and its hold measured once. */
export function samplesOf(event: LeaseEvent): readonly Sample[] {
  switch (event.type) {
    case 'attempt':
      return [{ metric: 'attempts', label: event.outcome }]
    case 'acquired':
      return [{ metric: 'acquired' }, { metric: 'wait', seconds: event.waitedMs / 1000 }]
    case 'renewed':
      return [{ metric: 'heartbeat', seconds: event.latencyMs / 1000 }]
    case 'lost':
      return [
        { metric: 'lost', label: event.reason },
        { metric: 'hold', seconds: event.heldForMs / 1000 },
      ]
    case 'released':
      // A lost lease is released too, to clean up; its hold ended with the loss.
      return event.outcome === 'lost' ? [] : [{ metric: 'hold', seconds: event.heldForMs / 1000 }]
    case 'at-risk':
      return []
  }
}
