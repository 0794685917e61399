// Metrics of the aggregators; each cell is a label.

import type { MainFamilies } from '../../gateway/metrics/main-families.ts'
import type { AggregatorEvents } from '../core/requests/aggregator-events.ts'
import {
  AGGREGATOR_DUE,
  AGGREGATOR_ENQUEUE,
  AGGREGATOR_INDEX_ERROR,
  AGGREGATOR_RECONCILE,
  POOL_DRAINED,
  POOL_LATENCY,
  POOL_PERIOD,
  POOL_SIZE,
  POOL_WAITED,
  UPDATE_TRIGGER,
} from './descriptors.ts'
import type { WorkerTurn } from './worker-metrics.ts'

/** @param updates called before each scrape @param monotonic milliseconds */
export function aggregatorEvents(
  families: MainFamilies,
  updates: (() => void)[],
  monotonic: () => number,
  worker: WorkerTurn,
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
