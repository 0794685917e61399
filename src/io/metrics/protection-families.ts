// How metrics that Podseidon has, too, are created: the prefix and its buckets.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Seconds: 1 us to 10 s (util/o11y/metrics of Podseidon). */
const SECONDS = [
  1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10,
]
/** Of batches and pools. */
export const SIZES: readonly number[] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 32_768]
/** Of waiting: 1 ms to a week. */
export const LATENCY_SECONDS: readonly number[] = [
  0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 86_400, 604_800,
]
const PREFIX = 'portcullis_'

export type Labels = Readonly<Record<string, string>>

/** A worker has had a turn. @param cell '' = it is of none @param error '' = none */
export type WorkerTurn = (worker: string, cell: string, error: string, durationMs: number) => void

/** Makes metrics of one registry, with the prefix. */
export class MetricFamilies {
  readonly #registry: Registry
  /** Names of the label for a namespace: one, or none. */
  readonly ofNamespace: readonly string[]

  /** @param byNamespace there is a label for the namespace: as many series as there are namespaces */
  constructor(registry: Registry, byNamespace = false) {
    this.#registry = registry
    this.ofNamespace = byNamespace ? ['namespace'] : []
  }

  /** The label that `ofNamespace` names. */
  inNamespace(namespace: string): Labels {
    return this.ofNamespace.length > 0 ? { namespace } : {}
  }

  histogram(
    name: string,
    help: string,
    labelNames: readonly string[],
    buckets: readonly number[] = SECONDS,
  ): Histogram {
    const registers = [this.#registry]
    return new Histogram({ name: PREFIX + name, help, labelNames: [...labelNames], buckets: [...buckets], registers })
  }

  counter(name: string, help: string, labelNames: readonly string[]): Counter {
    return new Counter({ name: PREFIX + name, help, labelNames: [...labelNames], registers: [this.#registry] })
  }

  gauge(name: string, help: string, labelNames: readonly string[]): Gauge {
    return new Gauge({ name: PREFIX + name, help, labelNames: [...labelNames], registers: [this.#registry] })
  }
}
