import type { Clock } from '../../environment.js'
import type { LeaseEvent } from '../../events.js'
import { METRICS, type Metric, samplesOf } from '../../metrics/table.js'
import { Tally } from './tally.js'
import { type Family, type Labels, seriesOf, type Values } from './textfile.js'

export const OUTCOMES = [
  'completed',
  'failed',
  'not-started',
  'lost',
  'held',
  'not-ready',
  'unavailable',
  'unsafe',
  'interrupted',
  'fault',
] as const
/** As `--json-log` tells them; a command that ended by itself has `completed` or `failed`. */
export type RunOutcome = (typeof OUTCOMES)[number]

const gauge = (name: string, help: string) => ({ name, help, type: 'gauge' }) as const satisfies Metric
const outcome = { name: 'outcome', values: OUTCOMES }

/** What only a run has. */
export const RUN_METRICS = {
  runs: { name: 'holdfast_runs_total', type: 'counter', help: 'Runs that have ended, by outcome.', label: outcome },
  outcome: {
    ...gauge('holdfast_last_run_outcome', '1 for the outcome of the last run, 0 for others.'),
    label: outcome,
  },
  exitCode: gauge('holdfast_last_run_exit_code', 'Exit code of the last run.'),
  acquired: gauge('holdfast_last_run_acquired', '1 if the last run got the lease, else 0.'),
  start: gauge('holdfast_last_run_start_timestamp_seconds', 'When the last run began.'),
  end: gauge('holdfast_last_run_end_timestamp_seconds', 'When the last run ended.'),
  success: gauge('holdfast_last_success_timestamp_seconds', 'When a run last completed; 0 when none is known.'),
  wait: gauge('holdfast_last_run_wait_seconds', 'Time that the last run waited for the lease, in vain or not.'),
  hold: gauge('holdfast_last_run_hold_seconds', 'Time that the last run held the lease.'),
  heartbeat: gauge('holdfast_last_run_heartbeat_latency_seconds', 'Slowest renewal of the last run that had one.'),
} as const satisfies Record<string, Metric>

/** One run, from its beginning to its end. */
export class RunMetrics {
  readonly #labels: Labels
  readonly #clock: Clock
  readonly #tally: Tally
  readonly #startedAt: number
  readonly #start: number
  #acquired = false
  #waitSeconds: number | undefined
  #holdSeconds = 0
  #slowest: number | undefined

  constructor(labels: Labels, clock: Clock) {
    this.#labels = labels
    this.#clock = clock
    this.#tally = new Tally(labels)
    this.#startedAt = clock.now()
    this.#start = clock.wall() / 1000
  }

  seen(event: LeaseEvent): void {
    for (const sample of samplesOf(event)) {
      const metric = METRICS[sample.metric]
      if ('seconds' in sample) this.#tally.measure(metric, sample.seconds)
      else this.#tally.count(metric, 'label' in sample ? sample.label : undefined)
      if (sample.metric === 'acquired') this.#acquired = true
      if (sample.metric === 'wait') this.#waitSeconds = sample.seconds
      if (sample.metric === 'hold') this.#holdSeconds = sample.seconds
      if (sample.metric === 'heartbeat') this.#slowest = Math.max(this.#slowest ?? 0, sample.seconds)
    }
  }

  /** What to write, given what the file says so far. */
  families(outcome: RunOutcome, exitCode: number, before: Values): Family[] {
    const { runs, success, ...last } = RUN_METRICS
    const end = this.#clock.wall() / 1000
    const waited = (this.#clock.now() - this.#startedAt) / 1000
    this.#tally.count(runs, outcome)
    const one = (metric: Metric, value: number): Family => ({
      metric,
      values: new Map([[this.#series(metric), value]]),
    })
    const { held: _, ...counted } = METRICS
    return [
      this.#tally.family(runs, before),
      one(success, outcome === 'completed' ? end : (before.get(this.#series(success)) ?? 0)),
      { metric: last.outcome, values: this.#outcomes(outcome) },
      one(last.exitCode, exitCode),
      one(last.acquired, Number(this.#acquired)),
      one(last.start, this.#start),
      one(last.end, end),
      one(last.wait, this.#waitSeconds ?? waited),
      one(last.hold, this.#holdSeconds),
      // A short run may have none.
      ...(this.#slowest === undefined ? [] : [one(last.heartbeat, this.#slowest)]),
      ...Object.values(counted).map((metric) => this.#tally.family(metric, before)),
    ]
  }

  #outcomes(outcome: RunOutcome): Values {
    const { name } = RUN_METRICS.outcome
    return new Map(
      OUTCOMES.map((each) => [seriesOf(name, { ...this.#labels, outcome: each }), Number(each === outcome)]),
    )
  }

  #series({ name }: Metric): string {
    return seriesOf(name, this.#labels)
  }
}
