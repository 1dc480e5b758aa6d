import { LeaseError } from '../errors.js'
import type { LeaseEvent } from '../events.js'
import type { Leases } from '../leases.js'
import type { Counter, Gauge, Histogram, Labels, PromClient, PrometheusRegistry } from './prom-client.js'
import { METRICS, type Metric, type Sample, samplesOf } from './table.js'

type LabelOf = ((key: string) => string) | undefined

/** The metrics of one registry, and the `Leases` that report to them. */
export class RegistryMetrics {
  readonly hasKeys: boolean
  readonly #counters: Readonly<Record<'acquired' | 'lost' | 'attempts', Counter>>
  readonly #histograms: Readonly<Record<'heartbeat' | 'wait' | 'hold', Histogram>>
  readonly #held: Gauge
  /** Weakly: a registry lives as long as the process, and must not keep `Leases` that are long gone. */
  readonly #attached = new Map<WeakRef<Leases>, LabelOf>()
  readonly #stops = new WeakMap<Leases, () => void>()

  constructor({ Counter, Gauge, Histogram }: PromClient, registry: PrometheusRegistry, hasKeys: boolean) {
    this.hasKeys = hasKeys
    refuseStrangers(registry)
    const settings = ({ name, help, label, buckets }: Metric) => ({
      name,
      help,
      labelNames: [...(hasKeys ? ['key'] : []), ...(label ? [label.name] : [])],
      registers: [registry],
      ...(buckets && { buckets }),
    })
    const counter = (metric: Metric) => {
      const made = new Counter(settings(metric))
      // A rate over a counter that begins at 1 misses the first.
      if (!hasKeys) for (const value of metric.label?.values ?? []) made.inc({ [metric.label?.name ?? '']: value }, 0)
      return made
    }
    const histogram = (metric: Metric) => new Histogram(settings(metric))
    const { acquired, lost, attempts, heartbeat, wait, hold, held } = METRICS
    this.#counters = { acquired: counter(acquired), lost: counter(lost), attempts: counter(attempts) }
    this.#held = new Gauge({ ...settings(held), collect: () => this.#countHeld() })
    this.#histograms = { heartbeat: histogram(heartbeat), wait: histogram(wait), hold: histogram(hold) }
  }

  /** Whether the registry still has them: it may have been cleared. */
  isIn(registry: PrometheusRegistry): boolean {
    return registry.getSingleMetric(METRICS.held.name) === this.#held
  }

  attach(leases: Leases, labelOf: LabelOf): () => void {
    const attached = this.#stops.get(leases)
    if (attached) return attached
    const ref = new WeakRef(leases)
    const stopListening = leases.observe((event) => this.#add(event, labelOf))
    const stop = () => {
      stopListening()
      this.#attached.delete(ref)
      this.#stops.delete(leases)
    }
    this.#attached.set(ref, labelOf)
    this.#stops.set(leases, stop)
    return stop
  }

  #add(event: LeaseEvent, labelOf: LabelOf): void {
    const labels = keyLabels(event.key, labelOf)
    for (const sample of samplesOf(event)) this.#addSample(sample, labels)
  }

  #addSample(sample: Sample, labels: Labels): void {
    if ('seconds' in sample) this.#histograms[sample.metric].observe(labels, sample.seconds)
    else if (sample.metric === 'acquired') this.#counters.acquired.inc(labels, 1)
    else this.#counters[sample.metric].inc({ ...labels, [METRICS[sample.metric].label.name]: sample.label }, 1)
  }

  /** Looked up, not added up: right for leases that were held before anybody listened. */
  #countHeld(): void {
    this.#held.reset()
    for (const [ref, labelOf] of this.#attached) {
      const leases = ref.deref()
      if (!leases) this.#attached.delete(ref)
      for (const key of leases?.heldKeys() ?? []) this.#held.inc(keyLabels(key, labelOf), 1)
    }
  }
}

/** Text in every case: a label that cannot be made must cost neither the count nor the scrape of all other metrics. */
function keyLabels(key: string, labelOf: LabelOf): Labels {
  if (!labelOf) return {}
  try {
    return { key: String(labelOf(key)) }
  } catch (error) {
    process.emitWarning(`keyLabel threw, so a lease is counted under an empty key: ${String(error)}`)
    return { key: '' }
  }
}

function refuseStrangers(registry: PrometheusRegistry): void {
  const taken = Object.values(METRICS).find(({ name }) => registry.getSingleMetric(name) !== undefined)
  if (!taken) return
  throw new LeaseError(
    'ERR_LEASE_UNSUPPORTED',
    `the registry has a metric ${taken.name} that is not ours (another copy of holdfast?); give prometheus() another registry`,
  )
}
