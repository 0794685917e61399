// Metrics of the aggregators; each cell is a label.

import type { AggregatorEvents } from '../../core/protection/requests/aggregator-events.ts'
import { LATENCY_SECONDS, type Labels, type MetricFamilies, SIZES, type WorkerTurn } from './protection-families.ts'

/** @param updates called before each scrape @param monotonic milliseconds */
export function aggregatorEvents(
  families: MetricFamilies,
  updates: (() => void)[],
  monotonic: () => number,
  worker: WorkerTurn,
): (cell: string) => AggregatorEvents {
  const of = ['cell', ...families.ofNamespace]
  const reconcile = families.histogram('aggregator_reconcile', 'Counts of the pods of a PodProtector', [...of, 'error'])
  const enqueueHelp = 'Time until it is known which PodProtectors an event concerns'
  const enqueue = families.histogram('aggregator_enqueue', enqueueHelp, [...of, 'kind'])
  const due = families.counter('aggregator_due_total', 'PodProtectors that are to be counted again', [...of, 'kind'])
  const unindexedHelp = 'PodProtectors whose pods cannot be determined'
  const unindexed = families.counter('aggregator_index_error', unindexedHelp, [...of, 'error'])
  const poolSize = families.gauge(
    'aggregator_next_event_pool_current_size',
    'PodProtectors that wait for the next event of their cell',
    ['cell'],
  )
  const poolLatency = families.gauge(
    'aggregator_next_event_pool_current_latency',
    'Seconds that the oldest of them has waited',
    ['cell'],
  )
  const drained = families.histogram(
    'aggregator_next_event_pool_drain_count',
    'How many were waiting when an event came',
    ['cell'],
    SIZES,
  )
  const period = families.histogram(
    'aggregator_next_event_pool_drain_period',
    'Seconds between two events of a cell',
    ['cell'],
    LATENCY_SECONDS,
  )
  const waited = families.histogram(
    'aggregator_next_event_pool_drain_object_latency',
    'Seconds that each of them waited',
    ['cell'],
    LATENCY_SECONDS,
  )
  const trigger = families.counter('aggregator_update_trigger_spin', 'Writes of the update trigger', [
    'cell',
    'event',
    'error',
  ])
  // During a stall nobody calls while time goes on: since when the oldest has waited, by cell.
  const since = new Map<string, number>()
  updates.push(() => {
    for (const [cell, sinceMs] of since) poolLatency.set({ cell }, (monotonic() - sinceMs) / 1000)
  })
  return (cell) => {
    const on = (namespace: string): Labels => ({ cell, ...families.inNamespace(namespace) })
    return {
      reconciled: (namespace, error, durationMs) => {
        reconcile.observe({ ...on(namespace), error: error === '' ? 'nil' : error }, durationMs / 1000)
        worker('aggregator', cell, error, durationMs)
        if (error === 'BadSelector') unindexed.inc({ ...on(namespace), error })
      },
      enqueued: (namespace, kind) => due.inc({ ...on(namespace), kind }),
      handled: (namespace, kind, durationMs) => enqueue.observe({ ...on(namespace), kind }, durationMs / 1000),
      pool: (size, oldestMs) => {
        poolSize.set({ cell }, size)
        if (size > 0) since.set(cell, monotonic() - oldestMs)
        else if (since.delete(cell)) poolLatency.set({ cell }, 0)
      },
      drained: (latenciesMs, periodMs) => {
        drained.observe({ cell }, latenciesMs.length)
        period.observe({ cell }, periodMs / 1000)
        for (const latencyMs of latenciesMs) waited.observe({ cell }, latencyMs / 1000)
      },
      trigger: (event, error) => trigger.inc({ cell, event, error: error === '' ? 'nil' : error }),
    }
  }
}
