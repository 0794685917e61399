// Podseidon's algorithm (kubewharf/podseidon at 9a84add), as it is, for comparison: its quota and history with the defects that
// matter to it. Counters of joined buckets are not added; maxConcurrentLag is constant within a batch and off once it is
// passed; one pod twice in a batch gets two buckets; a pod that has a bucket is not evaluated; buckets are dropped by the clock.

import type {
  AdmissionBucket,
  CellStatus,
  PodProtector,
  PodProtectorStatus,
} from '../../src/protection/api/pod-protector.ts'
import type { HistoryLimits } from '../../src/protection/core/history/cell-history.ts'
import { formatMicros, parseMicros } from '../../src/protection/core/history/micro-time.ts'
import type { PodCounts } from '../../src/protection/core/quota/pod-facts.ts'
import type { QuotaPod } from '../../src/protection/core/quota/quota.ts'

export type PodseidonResult = 'Ok' | 'AlreadyUnhealthy' | 'AlreadyHasBucket' | 'Denied' | 'Retry'

export interface PodseidonItem {
  readonly cell: string
  readonly uid: string
  readonly pod: QuotaPod
}

/** util/podprotector/podprotector.go CompactBuckets. */
function compactBuckets(buckets: readonly AdmissionBucket[], threshold: number): AdmissionBucket[] {
  const sorted = [...buckets].sort((a, b) => (a.startTime < b.startTime ? -1 : a.startTime > b.startTime ? 1 : 0))
  const [first] = sorted
  const delta = sorted.length - threshold
  if (delta <= 0 || first === undefined) return sorted
  const { startTime } = first
  let joined: AdmissionBucket = first.podUID === undefined ? first : { startTime, endTime: startTime, counter: 1 }
  for (const bucket of sorted.slice(1, delta + 1)) {
    const end = bucket.endTime ?? bucket.startTime
    if (end > (joined.endTime ?? '')) joined = { ...joined, endTime: end }
  }
  return [joined, ...sorted.slice(delta + 1)]
}

export function podseidonSummarize(cells: readonly CellStatus[], limits: HistoryLimits): PodProtectorStatus {
  const sum = { total: 0, available: 0, ready: 0, scheduled: 0, running: 0, lag: 0 }
  const compacted = cells.map((cell): CellStatus => {
    const { aggregation } = cell
    sum.total += aggregation?.totalReplicas ?? 0
    sum.available += aggregation?.availableReplicas ?? 0
    sum.ready += aggregation?.readyReplicas ?? 0
    sum.scheduled += aggregation?.scheduledReplicas ?? 0
    sum.running += aggregation?.runningReplicas ?? 0
    const buckets = compactBuckets(cell.admissionHistory?.buckets ?? [], limits.compactThreshold)
    for (const { counter } of buckets) sum.lag += counter ?? 1
    return { ...cell, admissionHistory: { buckets } }
  })
  return {
    cells: compacted,
    summary: {
      totalReplicas: sum.total,
      aggregatedAvailableReplicas: sum.available,
      estimatedAvailableReplicas: sum.available - sum.lag,
      aggregatedReady: sum.ready,
      aggregatedScheduled: sum.scheduled,
      aggregatedRunning: sum.running,
    },
  }
}

/** webhook/handler/disruptionquota/quota.go: newest first. */
export function podseidonQuota(
  { spec }: PodProtector,
  { summary }: PodProtectorStatus,
  pods: readonly QuotaPod[],
  limits: HistoryLimits,
): ('Ok' | 'AlreadyUnhealthy' | 'Denied' | 'Retry')[] {
  const counts = {
    Available: summary.aggregatedAvailableReplicas,
    Ready: summary.aggregatedReady ?? 0,
    Running: summary.aggregatedRunning ?? 0,
    Scheduled: summary.aggregatedScheduled ?? 0,
  }
  const lag = counts.Available - summary.estimatedAvailableReplicas
  // Decremented on a copy only.
  const remaining = limits.maxConcurrentLag === 0 ? undefined : limits.maxConcurrentLag - lag
  const results = pods.map((): 'Ok' | 'AlreadyUnhealthy' | 'Denied' | 'Retry' => 'Retry')
  const evaluate = (pod: QuotaPod): 'Ok' | 'AlreadyUnhealthy' | 'Denied' | 'Retry' => {
    if (remaining === 0) return 'Retry'
    const meets = { Available: pod.available, Ready: pod.ready, Running: pod.running, Scheduled: pod.scheduled }
    if (!meets[pod.criterion]) return 'AlreadyUnhealthy'
    if (counts[pod.criterion] <= spec.minAvailable) return 'Denied'
    return counts[pod.criterion] <= spec.minAvailable + lag ? 'Retry' : 'Ok'
  }
  for (let i = pods.length - 1; i >= 0; i--) {
    const pod = pods[i]
    if (pod === undefined) continue
    const result = evaluate(pod)
    results[i] = result
    if (result !== 'Ok' && result !== 'AlreadyUnhealthy') continue
    if (pod.available) counts.Available--
    if (pod.ready) counts.Ready--
    if (pod.running) counts.Running--
    if (pod.scheduled) counts.Scheduled--
  }
  return results
}

/** webhook/handler/pool_adapter.go: one batch. */
export function podseidonBatch(
  protector: PodProtector,
  items: readonly PodseidonItem[],
  limits: HistoryLimits,
  nowMicros: number,
): { readonly status: PodProtectorStatus; readonly results: readonly PodseidonResult[]; readonly changed: boolean } {
  const summarized = podseidonSummarize(protector.status?.cells ?? [], limits)
  const cells = new Map<string, AdmissionBucket[]>()
  for (const cell of summarized.cells) cells.set(cell.cellID, [...(cell.admissionHistory?.buckets ?? [])])
  const startTime = formatMicros(nowMicros)
  const results: (PodseidonResult | undefined)[] = items.map(({ cell, uid }) => {
    const buckets = cells.get(cell) ?? []
    cells.set(cell, buckets)
    const index = buckets.findIndex(({ podUID }) => podUID === uid)
    if (index < 0) return undefined
    buckets[index] = { startTime, podUID: uid }
    return 'AlreadyHasBucket'
  })
  const evaluated = items.filter((_, index) => results[index] === undefined)
  const quota = podseidonQuota(
    protector,
    summarized,
    evaluated.map(({ pod }) => pod),
    limits,
  )
  const rest = evaluated.map(({ cell, uid }, index): PodseidonResult => {
    const result = quota[index] ?? 'Retry'
    if (result === 'Ok' || result === 'AlreadyUnhealthy') cells.get(cell)?.push({ startTime, podUID: uid })
    return result
  })
  const merged = results.map((result): PodseidonResult => result ?? rest.shift() ?? 'Retry')
  const aggregations = new Map(summarized.cells.map(({ cellID, aggregation }) => [cellID, aggregation]))
  const status = podseidonSummarize(
    [...cells].map(([cellID, buckets]): CellStatus => {
      const aggregation = aggregations.get(cellID)
      return { cellID, admissionHistory: { buckets }, ...(aggregation === undefined ? {} : { aggregation }) }
    }),
    limits,
  )
  // A process that wrote a bucket, or refreshed one, changed something; a new cell is a change too.
  const changed =
    merged.some((result) => result !== 'Denied' && result !== 'Retry') ||
    cells.size !== (protector.status?.cells ?? []).length
  return { status, results: merged, changed }
}

/** aggregator/aggregator/controller.go updateLastEventTime and what follows it. `kept`: some bucket waits for another event. */
export function podseidonAggregate(
  protector: PodProtector,
  cellID: string,
  counts: PodCounts,
  syncTimeMicros: number,
  limits: HistoryLimits,
): { readonly status: PodProtectorStatus; readonly changed: boolean; readonly kept: boolean } {
  const cells = protector.status?.cells ?? []
  const before = cells.find((cell) => cell.cellID === cellID)
  const old = before?.aggregation
  const oldBuckets = before?.admissionHistory?.buckets ?? []
  const buckets = oldBuckets.filter(({ startTime, endTime }) => parseMicros(endTime ?? startTime) >= syncTimeMicros)
  const changed =
    old === undefined ||
    old.totalReplicas !== counts.total ||
    old.availableReplicas !== counts.available ||
    old.readyReplicas !== counts.ready ||
    old.scheduledReplicas !== counts.scheduled ||
    old.runningReplicas !== counts.running ||
    buckets.length !== oldBuckets.length
  const cell: CellStatus = {
    cellID,
    aggregation: {
      totalReplicas: counts.total,
      availableReplicas: counts.available,
      readyReplicas: counts.ready,
      scheduledReplicas: counts.scheduled,
      runningReplicas: counts.running,
      lastEventTime: formatMicros(syncTimeMicros),
    },
    admissionHistory: { buckets },
  }
  const status = podseidonSummarize([...cells.filter((other) => other.cellID !== cellID), cell], limits)
  return { status, changed, kept: buckets.length > 0 }
}
