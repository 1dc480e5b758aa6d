import type { Metric } from '../../metrics/table.js'
import { type Family, type Labels, seriesOf, type Values } from './textfile.js'

/** Counters and histograms: what was counted now, and what an earlier file says. */
export class Tally {
  readonly #labels: Labels
  readonly #added = new Map<string, number>()

  constructor(labels: Labels) {
    this.#labels = labels
  }

  count(metric: Metric, label?: string): void {
    this.#add(this.#series(metric, label), 1)
  }

  measure(metric: Metric, seconds: number): void {
    const { buckets, sum, count } = this.#histogram(metric)
    for (const [bound, series] of buckets) if (seconds <= bound) this.#add(series, 1)
    this.#add(sum, seconds)
    this.#add(count, 1)
  }

  /** All series of the metric, those that are 0 too: a rate over a counter that begins at 1 misses the first. */
  family(metric: Metric, before: Values): Family {
    const names = this.#seriesOfAll(metric)
    const old = metric.type === 'histogram' && !this.#isWhole(metric, before) ? new Map() : before
    return { metric, values: new Map(names.map((name) => [name, amount(old, name) + amount(this.#added, name)])) }
  }

  #add(series: string, value: number): void {
    this.#added.set(series, amount(this.#added, series) + value)
  }

  #series({ name, label }: Metric, value?: string): string {
    return seriesOf(name, { ...this.#labels, ...(label && value !== undefined && { [label.name]: value }) })
  }

  #seriesOfAll(metric: Metric): string[] {
    if (metric.type !== 'histogram') {
      return metric.label ? metric.label.values.map((value) => this.#series(metric, value)) : [this.#series(metric)]
    }
    const { buckets, sum, count } = this.#histogram(metric)
    return [...buckets.map(([, series]) => series), sum, count]
  }

  #histogram({ name, buckets = [] }: Metric) {
    const bounds = [...buckets, Number.POSITIVE_INFINITY]
    const le = (bound: number) => (bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound))
    return {
      buckets: bounds.map((bound) => [bound, seriesOf(`${name}_bucket`, { ...this.#labels, le: le(bound) })] as const),
      sum: seriesOf(`${name}_sum`, this.#labels),
      count: seriesOf(`${name}_count`, this.#labels),
    }
  }

  /** Other buckets (of another version of holdfast), or a part of them, cannot be added to. */
  #isWhole(metric: Metric, values: Values): boolean {
    const { buckets, sum, count } = this.#histogram(metric)
    const counts = [...buckets.map(([, series]) => series), count].map((series) => values.get(series))
    const grows = counts.every((each, index) => each !== undefined && each >= (counts[index - 1] ?? 0))
    return grows && counts.at(-1) === counts.at(-2) && values.has(sum)
  }
}

/** Nothing that was counted is below 0. */
const amount = (values: Values, series: string): number => Math.max(values.get(series) ?? 0, 0)
