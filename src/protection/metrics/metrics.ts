// Metrics of pod protection: Podseidon's names and labels, with the prefix `portcullis_`. All on the main thread.

import type { ClockSkew } from '../../gateway/core/clocks/cell-clock.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { MainFamilies, type MainFamily } from '../../gateway/metrics/main-families.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../api/protection.ts'
import type { GeneratorEvents } from '../core/generator/decision.ts'
import type { AggregatorEvents, ProtectionEvents } from '../core/requests/protection-events.ts'
import {
  AGGREGATOR_DUE,
  AGGREGATOR_ENQUEUE,
  AGGREGATOR_INDEX_ERROR,
  AGGREGATOR_RECONCILE,
  BATCH,
  BATCH_RETRIES,
  CELL_CLOCK_SKEW,
  EXECUTE,
  EXECUTE_SIZE,
  GENERATOR_ACTION,
  GENERATOR_RECONCILE,
  INFLIGHT_KEYS,
  LEADER,
  LEADER_EVENT,
  LEADER_HEARTBEAT,
  MONITORS,
  POOL_DRAINED,
  POOL_LATENCY,
  POOL_PERIOD,
  POOL_SIZE,
  POOL_WAITED,
  PROTECTOR_ENQUEUE,
  PROTECTOR_INDEX_ERROR,
  PROTECTOR_MALFORMED,
  PROTECTOR_SOURCE_ERROR,
  PROTECTOR_SOURCES,
  PROTECTORS_FOLLOWING,
  RELEASED,
  SUBMIT,
  SUBMIT_RETRIES,
  UPDATE_TRIGGER,
  WEBHOOK_HANDLED,
  WEBHOOK_HTTP_ERROR,
  WEBHOOK_REQUEST,
  WORKER_QUEUE_LENGTH,
  WORKER_RECONCILE,
} from './descriptors.ts'

const POOL = 'podprotector-update'

interface ProtectionMetricsOptions {
  /** Adds a namespace label: as many series as there are namespaces. Default false. */
  readonly byNamespace?: boolean
  /** Adds a user label; `system:node:*` counts as `system:node`. Default false. */
  readonly byUser?: boolean
  /** Identity of this replica in the elections it leads. */
  readonly identity: string
  /** Monotonic milliseconds. */
  monotonic(): number
}

/** Current lengths of the work queues. */
interface WorkQueued {
  /** PodProtectors with pending writes. */
  readonly writing: number
  /** Workloads waiting for the generator. */
  readonly generator: number
  /** PodProtectors waiting to be counted, by cell. */
  readonly cells: ReadonlyMap<string, number>
}

interface WebhookAnswered {
  /** '' = an unknown cell. */
  readonly cell: string
  readonly cause: string
  /** HttpError: it was not a review, or its caller is unknown; see `code`. */
  readonly status: string
  readonly code: number
  readonly durationMs: number
}

/** Results of requests that the webhook answers without the ledger. */
const WITHOUT_LEDGER: ReadonlySet<string> = new Set(['NotRelevant', 'NotFound', 'UnknownCell', 'Unexpected'])

export interface ProtectionMetrics {
  readonly events: ProtectionEvents
  /** Metrics of one cell's aggregator; the gauges of several cells differ in their label. */
  aggregator(cell: string): AggregatorEvents
  readonly generator: GeneratorEvents
  /** A request to the webhook was answered. Ledger evaluations are only reported by `events`. */
  webhookAnswered(outcome: WebhookAnswered): void
  leader(elector: string, leads: boolean): void
  queued(work: WorkQueued): void
  /** Clock skew by cell. */
  clocks(skews: ReadonlyMap<string, ClockSkew>): void
  /** Gauges over all protectors, by the part after `generator_monitor_workloads_`. */
  monitor(values: ReadonlyMap<string, number>): void
  /** Called before every scrape. */
  beforeScrape(update: () => void): void
  expose(into: Exposition): void
}

export function createProtectionMetrics(options: ProtectionMetricsOptions): ProtectionMetrics {
  const { byNamespace = false, byUser = false, monotonic } = options
  const families = new MainFamilies([...(byNamespace ? [] : ['namespace']), ...(byUser ? [] : ['user'])])
  const updates: (() => void)[] = []
  const worker = observeReconciles(families)
  const ledger = ledgerEvents(families)
  const { reviewed, webhookAnswered } = reviewEvents(families)
  return {
    events: { ...ledger.events, reviewed },
    webhookAnswered,
    aggregator: aggregatorEvents(families, updates, monotonic, worker),
    generator: generatorEvents(families, worker),
    queued: queuedGauges(families, ledger.writing),
    clocks: showClocks(families),
    leader: leaderEvents(families, updates, options),
    monitor: monitorGauges(families),
    beforeScrape: (update) => void updates.push(update),
    expose: (into) => {
      for (const update of updates) update()
      families.expose(into)
    },
  }
}

function queuedGauges(families: MainFamilies, writing: (keys: number) => void): ProtectionMetrics['queued'] {
  const lengths = families.of(WORKER_QUEUE_LENGTH)
  return (work) => {
    writing(work.writing)
    // Drops the series of cells that no longer exist.
    lengths.clear()
    lengths.set(work.generator, 'generator', '')
    for (const [cell, length] of work.cells) lengths.set(length, 'aggregator', cell)
  }
}

/** Folds `system:node:*`, as Podseidon does: there are thousands of nodes. */
function shownUser(user: string): string {
  return user.startsWith('system:node:') ? 'system:node' : user
}

function showClocks(families: MainFamilies): ProtectionMetrics['clocks'] {
  const gauge = families.of(CELL_CLOCK_SKEW)
  return (skews) => {
    gauge.clear()
    for (const [cell, { leastMs, mostMs }] of skews) {
      gauge.set(leastMs / 1000, cell, 'least')
      gauge.set(mostMs / 1000, cell, 'most')
    }
  }
}

function reviewEvents(
  families: MainFamilies,
): Pick<ProtectionEvents, 'reviewed'> & Pick<ProtectionMetrics, 'webhookAnswered'> {
  const requests = families.of(WEBHOOK_REQUEST)
  const handled = families.of(WEBHOOK_HANDLED)
  const http = families.of(WEBHOOK_HTTP_ERROR)
  return {
    webhookAnswered({ cell, cause, status, code, durationMs }) {
      if (status === 'HttpError') http.add(1, cell, String(code))
      else if (WITHOUT_LEDGER.has(status)) requests.observe(durationMs / 1000, cell, status, cause)
    },
    reviewed(request: ProtectionRequest, verdict: ProtectionVerdict, protectors, durationMs) {
      const { cell, cause, pod } = request
      requests.observe(durationMs / 1000, cell, verdict.status, cause)
      const rejected = verdict.admitted ? 'false' : 'true'
      const user = shownUser(request.user)
      for (const _ of protectors) handled.observe(durationMs / 1000, cell, cause, rejected, pod.namespace, user)
    },
  }
}

function leaderEvents(
  families: MainFamilies,
  updates: (() => void)[],
  { monotonic, identity }: ProtectionMetricsOptions,
): (elector: string, leading: boolean) => void {
  const leads = families.of(LEADER)
  const held = families.of(LEADER_HEARTBEAT)
  const changes = families.of(LEADER_EVENT)
  const since = new Map<string, number>()
  // All Leases are stored next to the PodProtectors.
  const cluster = 'core'
  updates.push(() => {
    for (const [elector, sinceMs] of since) held.set((monotonic() - sinceMs) / 1000, cluster, elector, identity)
  })
  return (elector, leading) => {
    leads.set(leading ? 1 : 0, cluster, elector, identity)
    changes.add(1, cluster, elector, identity, leading ? 'acquired' : 'lost')
    if (leading) since.set(elector, monotonic())
    else if (since.delete(elector)) held.remove(cluster, elector, identity)
  }
}

/** Shown once their values are known. */
function monitorGauges(families: MainFamilies): ProtectionMetrics['monitor'] {
  const shown = new Map<string, MainFamily<[]>>()
  return (values) => {
    for (const [name, value] of values) {
      const metric = MONITORS.get(name)
      if (metric === undefined) continue
      const gauge = shown.get(name) ?? families.of(metric)
      shown.set(name, gauge)
      gauge.set(value)
    }
  }
}

/** Metrics of the aggregators; each cell is a label. @param updates called before each scrape @param monotonic milliseconds */
function aggregatorEvents(
  families: MainFamilies,
  updates: (() => void)[],
  monotonic: () => number,
  worker: ReconcileObserver,
): (cell: string) => AggregatorEvents {
  const reconcile = families.of(AGGREGATOR_RECONCILE)
  const enqueue = families.of(AGGREGATOR_ENQUEUE)
  const due = families.of(AGGREGATOR_DUE)
  const unindexed = families.of(AGGREGATOR_INDEX_ERROR)
  const poolSize = families.of(POOL_SIZE)
  const poolLatency = families.of(POOL_LATENCY)
  const drained = families.of(POOL_DRAINED)
  const period = families.of(POOL_PERIOD)
  const waited = families.of(POOL_WAITED)
  const trigger = families.of(UPDATE_TRIGGER)
  // During a stall there are no calls, yet time passes: when the oldest began to wait, by cell.
  const since = new Map<string, number>()
  updates.push(() => {
    for (const [cell, sinceMs] of since) poolLatency.set((monotonic() - sinceMs) / 1000, cell)
  })
  return (cell) => ({
    reconciled: (namespace, error, durationMs) => {
      reconcile.observe(durationMs / 1000, cell, namespace, error || 'nil')
      worker('aggregator', cell, error, durationMs)
      if (error === 'BadSelector') unindexed.add(1, cell, namespace, error)
    },
    enqueued: (namespace, kind) => due.add(1, cell, namespace, kind),
    handled: (namespace, kind, durationMs) => enqueue.observe(durationMs / 1000, cell, namespace, kind),
    pool: (size, oldestMs) => {
      poolSize.set(size, cell)
      if (size > 0) since.set(cell, monotonic() - oldestMs)
      else if (since.delete(cell)) poolLatency.set(0, cell)
    },
    drained: (latenciesMs, periodMs) => {
      drained.observe(latenciesMs.length, cell)
      period.observe(periodMs / 1000, cell)
      for (const latencyMs of latenciesMs) waited.observe(latencyMs / 1000, cell)
    },
    trigger: (event, error) => trigger.add(1, cell, event, error || 'nil'),
  })
}

/** Metrics of the generator of PodProtectors. */
function generatorEvents(families: MainFamilies, worker: ReconcileObserver): GeneratorEvents {
  const reconcile = families.of(GENERATOR_RECONCILE)
  const act = families.of(GENERATOR_ACTION)
  return {
    reconciled: ({ resource: { group, version, plural } }, namespace, error, durationMs) => {
      reconcile.observe(durationMs / 1000, group, version, plural, namespace, error || 'nil')
      worker('generator', '', error, durationMs)
    },
    found: ({ resource: { group, version, plural } }, namespace, finding) =>
      act.add(1, group, version, plural, namespace, finding),
  }
}

interface LedgerMetrics {
  readonly events: Omit<ProtectionEvents, 'reviewed'>
  /** Number of PodProtectors with pending writes. */
  writing(keys: number): void
}

/** Metrics of the ledger: its writes, and its view of the PodProtectors. */
function ledgerEvents(families: MainFamilies): LedgerMetrics {
  const keys = families.of(INFLIGHT_KEYS)
  return {
    events: { ...writeEvents(families), ...indexEvents(families) },
    writing: (count) => keys.set(count, POOL),
  }
}

function writeEvents(families: MainFamilies): Pick<ProtectionEvents, 'executed' | 'batch' | 'submitted' | 'released'> {
  const submit = families.of(SUBMIT)
  const retries = families.of(SUBMIT_RETRIES)
  const batch = families.of(BATCH)
  const batchRetries = families.of(BATCH_RETRIES)
  const execute = families.of(EXECUTE)
  const size = families.of(EXECUTE_SIZE)
  const released = families.of(RELEASED)
  return {
    executed(_key, operations, result, error, durationMs) {
      execute.observe(durationMs / 1000, POOL, result, error || 'nil')
      size.observe(operations, POOL, result, error || 'nil')
    },
    batch(durationMs, retried) {
      batch.observe(durationMs / 1000, POOL)
      batchRetries.observe(retried, POOL)
    },
    submitted(error, durationMs, retried) {
      submit.observe(durationMs / 1000, POOL, error || 'nil')
      retries.observe(retried, POOL, error || 'nil')
    },
    released: (count) => released.add(count),
  }
}

function indexEvents(families: MainFamilies): Pick<ProtectionEvents, 'indexed' | 'malformed' | 'following'> {
  const enqueue = families.of(PROTECTOR_ENQUEUE)
  const errors = families.of(PROTECTOR_INDEX_ERROR)
  const malformed = families.of(PROTECTOR_MALFORMED)
  const current = families.of(PROTECTORS_FOLLOWING)
  const sources = families.of(PROTECTOR_SOURCES)
  const sourceErrors = families.of(PROTECTOR_SOURCE_ERROR)
  return {
    indexed: (durationMs) => enqueue.observe(durationMs / 1000),
    malformed(count, found) {
      malformed.set(count)
      if (found) errors.add(1, 'Malformed')
    },
    following(isCurrent) {
      current.set(isCurrent ? 1 : 0)
      sources.set(1)
      if (!isCurrent) sourceErrors.add(1, 'NotFollowed')
    },
  }
}

/** A worker has run. @param cell '' = none @param error '' = none */
type ReconcileObserver = (worker: string, cell: string, error: string, durationMs: number) => void

/** Metrics of the workers of pod protection. */
function observeReconciles(families: MainFamilies): ReconcileObserver {
  const reconciles = families.of(WORKER_RECONCILE)
  return (worker, cell, error, durationMs) => reconciles.observe(durationMs / 1000, worker, cell, error || 'nil')
}
