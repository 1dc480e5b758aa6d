/** What happens to leases, as metrics. See `docs/metrics.md`. */
export type { PrometheusRegistry } from './prom-client.js'
export { type PrometheusOptions, prometheus } from './prometheus.js'
