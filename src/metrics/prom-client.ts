/** What is used of `prom-client`: by shape, since it is an optional peer that our declarations must not need. */
import { createRequire } from 'node:module'
import { LeaseError } from '../errors.js'
import type { Metric } from './table.js'

/** A registry of `prom-client`. */
export interface PrometheusRegistry {
  getSingleMetric(name: string): unknown
  registerMetric(metric: never): void
}

export type Labels = Readonly<Record<string, string>>

export interface Counter {
  inc(labels: Labels, value: number): void
}
export interface Gauge extends Counter {
  reset(): void
}
export interface Histogram {
  observe(labels: Labels, value: number): void
}

interface Settings extends Pick<Metric, 'name' | 'help' | 'buckets'> {
  readonly labelNames: readonly string[]
  readonly registers: readonly PrometheusRegistry[]
  readonly collect?: () => void
}

export interface PromClient {
  readonly register: PrometheusRegistry
  readonly Counter: new (settings: Settings) => Counter
  readonly Gauge: new (settings: Settings) => Gauge
  readonly Histogram: new (settings: Settings) => Histogram
}

/** When first needed, and by `require`: so `prometheus` can answer at once, and gets the copy that an `import` gets. */
export function loadPromClient(): PromClient {
  try {
    return createRequire(import.meta.url)('prom-client') as PromClient
  } catch (cause) {
    throw new LeaseError('ERR_LEASE_UNSUPPORTED', 'prometheus() needs prom-client: npm install prom-client', { cause })
  }
}

export const isRegistry = (value: unknown): value is PrometheusRegistry =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as PrometheusRegistry).getSingleMetric === 'function' &&
  typeof (value as PrometheusRegistry).registerMetric === 'function'
