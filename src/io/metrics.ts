// The metrics of the process, in one registry of its own: requests (request-metrics.ts), events of the rest of the
// gateway (event-metrics.ts), and the process itself. Names are kube-apiserver's where it has one, after `portcullis_`.

import { collectDefaultMetrics, Registry } from 'prom-client'
import type { RequestRecord } from '../api/request-record.ts'
import { createEventMetrics, type EventMetrics } from './event-metrics.ts'
import { Exposition } from './metric-series.ts'
import { RequestMetrics } from './request-metrics.ts'

/** Everything that is counted. */
export interface GatewayMetrics extends EventMetrics {
  /** To be called whenever clusters come, go or change their endpoints; other clusters are counted as ''. */
  clustersChanged(clusters: Iterable<KnownCluster>): void
  /** Counts the request as in flight (or long-running) until `observe`; cluster and request info are known. */
  requestStarted(record: RequestRecord): void
  /** Once per request, at its end; also for requests that `requestStarted` was not called for. */
  observe(record: RequestRecord): void
  /** Called before every scrape, to set gauges whose state lives elsewhere. */
  beforeScrape(update: () => void): void
  /** The Prometheus text format. */
  text(): Promise<string>
  readonly contentType: string
}

/** A cluster and its endpoints: what may appear in labels. */
export interface KnownCluster {
  readonly name: string
  readonly endpoints: readonly string[]
}

/** All counters at zero; instances share nothing but the process that they measure. */
export function createMetrics(): GatewayMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'portcullis_' })
  const requests = new RequestMetrics()
  const { events, retain } = createEventMetrics(registry)
  const updates: (() => void)[] = []
  return {
    ...events,
    clustersChanged: (clusters) => {
      const known = new Map<string, ReadonlySet<string>>()
      for (const cluster of clusters) known.set(cluster.name, new Set(cluster.endpoints))
      requests.setClusters(known.keys())
      retain(known)
    },
    requestStarted: (record) => requests.started(record),
    observe: (record) => requests.observe(record),
    beforeScrape: (update) => {
      updates.push(update)
    },
    text: async () => {
      for (const update of updates) update()
      const exposition = new Exposition()
      await requests.expose(exposition, () => new Promise((resolve) => setImmediate(resolve)))
      return `${exposition.text()}${await registry.metrics()}`
    },
    contentType: registry.contentType,
  }
}
