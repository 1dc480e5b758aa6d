import type { Leases } from '../leases.js'
import { isRegistry, loadPromClient, type PrometheusRegistry } from './prom-client.js'
import { RegistryMetrics } from './registry-metrics.js'

export interface PrometheusOptions {
  /**
   * Adds the label `key` to every metric, with what this makes of a key: best a group out of a few, such as
   * `(key) => key.split(':')[0]`. Default: no such label. The dangerous case: each value costs about 60 time series, kept
   * for the life of the process, so `(key) => key` over many keys fills the memory of this process and of Prometheus.
   */
  readonly keyLabel?: (key: string) => string
}

const known = new WeakMap<PrometheusRegistry, RegistryMetrics>()

/**
 * Reports what happens to these leases, from now on, to a registry of `prom-client` (default: its default registry).
 * Several `Leases` may share a registry: their numbers add up. The same `Leases` again on the same registry changes
 * nothing. Gives a function that ends the reporting; what was counted stays.
 * @throws {LeaseError} `ERR_LEASE_UNSUPPORTED`: prom-client is not installed, or the registry has metrics of these names
 * already that are not ours.
 */
export function prometheus(leases: Leases, register?: PrometheusRegistry, options: PrometheusOptions = {}): () => void {
  const { keyLabel } = options
  check(leases, register, keyLabel)
  const client = loadPromClient()
  const registry = register ?? client.register
  let metrics = known.get(registry)
  if (!metrics?.isIn(registry)) {
    metrics = new RegistryMetrics(client, registry, keyLabel !== undefined)
    known.set(registry, metrics)
  }
  if (metrics.hasKeys !== (keyLabel !== undefined)) {
    throw new TypeError(
      'keyLabel must be given for all Leases of one registry or for none: a metric has one set of labels',
    )
  }
  return metrics.attach(leases, keyLabel)
}

function check(leases: unknown, register: unknown, keyLabel: unknown): void {
  const { observe, heldKeys } = (leases ?? {}) as Partial<Leases>
  if (typeof observe !== 'function' || typeof heldKeys !== 'function') {
    throw new TypeError(`leases must be what createLeases() gave, but got ${typeof leases}`)
  }
  if (register !== undefined && !isRegistry(register)) {
    throw new TypeError(`register must be a Registry of prom-client, but got ${typeof register}`)
  }
  if (keyLabel !== undefined && typeof keyLabel !== 'function') {
    throw new TypeError(`keyLabel must be a function from a key to text, but got ${typeof keyLabel}`)
  }
}
