// Metrics of pod protection: Podseidon's, by their names and labels, with the prefix `portcullis_`. All of it happens on the
// main thread.

import { type Gauge, Registry } from 'prom-client'
import type { ProtectionRequest, ProtectionVerdict } from '../../api/ports/protection.ts'
import type { ClockSkew } from '../../core/protection/clocks/cell-clock.ts'
import type { GeneratorEvents } from '../../core/protection/generator/events.ts'
import type { AggregatorEvents } from '../../core/protection/requests/aggregator-events.ts'
import type { ProtectionEvents } from '../../core/protection/requests/protection-events.ts'
import { aggregatorEvents } from './aggregator-metrics.ts'
import { generatorEvents } from './generator-metrics.ts'
import { ledgerEvents } from './ledger-metrics.ts'
import { type Labels, MetricFamilies, type WorkerTurn } from './protection-families.ts'

export interface ProtectionMetricsOptions {
  /** A label for the namespace; as many series as there are namespaces. Default false. */
  readonly byNamespace?: boolean
  /** A label for the user; `system:node:*` counts as `system:node`. Default false. */
  readonly byUser?: boolean
  /** The elections that this replica leads. */
  readonly identity: string
  /** Monotonic milliseconds. */
  monotonic(): number
}

/** Current lengths of the work queues. */
export interface WorkQueued {
  /** PodProtectors with something to be written. */
  readonly writing: number
  /** Workloads that wait for the generator. */
  readonly generator: number
  /** PodProtectors that wait to be counted, by cell. */
  readonly cells: ReadonlyMap<string, number>
}

export interface WebhookAnswered {
  /** '' = one that is not known. */
  readonly cell: string
  readonly cause: string
  /** HttpError: it was not a review, or its caller is unknown; `code` says more. */
  readonly status: string
  readonly code: number
  readonly durationMs: number
}

/** Requests that the webhook answers without the ledger. */
const WITHOUT_LEDGER: ReadonlySet<string> = new Set(['NotRelevant', 'NotFound', 'UnknownCell', 'Unexpected'])

export interface ProtectionMetrics {
  readonly events: ProtectionEvents
  /** Metrics of one cell's aggregator; the gauges of several differ in their label. */
  aggregator(cell: string): AggregatorEvents
  readonly generator: GeneratorEvents
  /** A request to the webhook was answered. What the ledger evaluates is reported by `events` alone. */
  webhookAnswered(outcome: WebhookAnswered): void
  leader(elector: string, leads: boolean): void
  queued(work: WorkQueued): void
  /** How far clocks are ahead, by cell. */
  clocks(skews: ReadonlyMap<string, ClockSkew>): void
  /** Gauges of all protectors together, by what follows `generator_monitor_workloads_`. */
  monitor(values: ReadonlyMap<string, number>): void
  /** Called before every scrape. */
  beforeScrape(update: () => void): void
  /** In the Prometheus text format. */
  text(): Promise<string>
}

export function createProtectionMetrics(options: ProtectionMetricsOptions): ProtectionMetrics {
  const registry = new Registry()
  const families = new MetricFamilies(registry, options.byNamespace)
  const updates: (() => void)[] = []
  const { reviewed, webhookAnswered } = reviewEvents(families, options)
  const reconciles = families.histogram('worker_reconcile', 'Turns of the workers', ['worker', 'cell', 'error'])
  const worker: WorkerTurn = (name, cell, error, durationMs) => {
    reconciles.observe({ worker: name, cell, error: error === '' ? 'nil' : error }, durationMs / 1000)
  }
  const ledger = ledgerEvents(families)
  return {
    events: { ...ledger.events, reviewed },
    webhookAnswered,
    aggregator: aggregatorEvents(families, updates, options.monotonic, worker),
    generator: generatorEvents(families, worker),
    queued: queuedGauges(families, ledger.writing),
    clocks: showClocks(families),
    ...otherEvents(families, updates, options),
    beforeScrape: (update) => void updates.push(update),
    text: () => {
      for (const update of updates) update()
      return registry.metrics()
    },
  }
}

function queuedGauges(families: MetricFamilies, writing: (keys: number) => void): ProtectionMetrics['queued'] {
  const lengths = families.gauge('worker_queue_length', 'What waits for a turn of a worker', ['worker', 'cell'])
  return (work) => {
    writing(work.writing)
    // Drops the series of cells that no longer exist.
    lengths.reset()
    lengths.set({ worker: 'generator', cell: '' }, work.generator)
    for (const [cell, length] of work.cells) lengths.set({ worker: 'aggregator', cell }, length)
  }
}

/** `system:node:*` folded, as Podseidon does: there are thousands of nodes. */
function shownUser(user: string): string {
  return user.startsWith('system:node:') ? 'system:node' : user
}

function showClocks(families: MetricFamilies): ProtectionMetrics['clocks'] {
  const help = "Bounds of the seconds by which the clocks of a cell's API servers are ahead of this replica's"
  const gauge = families.gauge('cell_clock_skew_seconds', help, ['cell', 'bound'])
  return (skews) => {
    gauge.reset()
    for (const [cell, { leastMs, mostMs }] of skews) {
      gauge.set({ cell, bound: 'least' }, leastMs / 1000)
      gauge.set({ cell, bound: 'most' }, mostMs / 1000)
    }
  }
}

function reviewEvents(
  families: MetricFamilies,
  { byUser = false }: ProtectionMetricsOptions,
): Pick<ProtectionEvents, 'reviewed'> & Pick<ProtectionMetrics, 'webhookAnswered'> {
  const requests = families.histogram('webhook_request', 'Pod deletions that were evaluated, and how long that took', [
    'cell',
    'status',
    'cause',
  ])
  const extra = [...families.ofNamespace, ...(byUser ? ['user'] : [])]
  const handled = families.histogram(
    'webhook_handle_pod_in_ppr',
    'Pod deletions that were evaluated, once for each PodProtector of the pod',
    ['pod_cell', 'request_type', 'rejected', ...extra],
  )
  const http = families.counter(
    'webhook_http_error',
    'Requests to the webhook that were not a review from a known caller',
    ['cell', 'error'],
  )
  return {
    webhookAnswered({ cell, cause, status, code, durationMs }) {
      if (status === 'HttpError') http.inc({ cell, error: String(code) })
      else if (WITHOUT_LEDGER.has(status)) requests.observe({ cell, status, cause }, durationMs / 1000)
    },
    reviewed(request: ProtectionRequest, verdict: ProtectionVerdict, protectors, durationMs) {
      const { cell, cause, pod, user } = request
      requests.observe({ cell, status: verdict.status, cause }, durationMs / 1000)
      const rejected = String(!verdict.admitted)
      const labels: Labels = {
        pod_cell: cell,
        request_type: cause,
        rejected,
        ...families.inNamespace(pod.namespace),
        ...(byUser && { user: shownUser(user) }),
      }
      for (const _ of protectors) handled.observe(labels, durationMs / 1000)
    },
  }
}

function otherEvents(
  families: MetricFamilies,
  updates: (() => void)[],
  { monotonic, identity }: ProtectionMetricsOptions,
): Pick<ProtectionMetrics, 'leader' | 'monitor'> {
  const on = ['cluster_class', 'elector_name', 'identity']
  const leads = families.gauge('leader', '1 when this replica leads', on)
  const held = families.gauge('leader_heartbeat', 'Seconds since this replica began to lead, where it does', on)
  const since = new Map<string, number>()
  // All Leases are where the PodProtectors are.
  const labelsOf = (name: string): Labels => ({ cluster_class: 'core', elector_name: name, identity })
  updates.push(() => {
    for (const [name, sinceMs] of since) held.set(labelsOf(name), (monotonic() - sinceMs) / 1000)
  })
  const changes = families.counter('leader_event', 'Changes of leadership: acquired or lost', [...on, 'event'])
  const monitors = new Map<string, Gauge>()
  return {
    leader(elector, leading) {
      const labels = labelsOf(elector)
      leads.set(labels, leading ? 1 : 0)
      changes.inc({ ...labels, event: leading ? 'acquired' : 'lost' })
      if (leading) since.set(elector, monotonic())
      else if (since.delete(elector)) held.remove(labels)
    },
    monitor(values) {
      for (const [name, value] of values) {
        const full = `generator_monitor_workloads_${name}`
        const gauge = monitors.get(name) ?? families.gauge(full, 'Over all PodProtectors; see docs/protection.md', [])
        monitors.set(name, gauge)
        gauge.set(value)
      }
    },
  }
}
