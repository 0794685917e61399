// Learns list sizes: observes this thread's responses, and exchanges sizes with other threads through the main thread.

import type { ListSize } from '../../../gateway/api/list-request.ts'
import type { RequestObserver } from '../../../gateway/api/request-observer.ts'
import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { seenOf } from '../../../gateway/core/list-cost/list-sizes.ts'
import { LIST_GUARD, LIST_SEATS } from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import type { FromThread } from '../messages.ts'

export class ListLearning implements RequestObserver {
  readonly #clusters: () => ClusterTable
  readonly #metrics: MetricsRecorder
  readonly #now: () => number
  readonly #post: (message: FromThread) => void
  /** Sizes learned in this turn, by cluster. */
  #learned = new Map<string, ListSize[]>()

  /** @param now milliseconds since the epoch */
  constructor(
    clusters: () => ClusterTable,
    metrics: MetricsRecorder,
    now: () => number,
    post: (message: FromThread) => void,
  ) {
    this.#clusters = clusters
    this.#metrics = metrics
    this.#now = now
    this.#post = post
  }

  requestEnded(record: RequestRecord): void {
    const { list, cluster } = record
    if (list === undefined) return
    if (list.outcome !== '') this.#metrics.add(LIST_GUARD, 1, cluster, list.outcome)
    if (list.charged && record.refusal === '') this.#metrics.add(LIST_SEATS, list.seats, cluster, record.flowControl)
    const { answer } = list
    if (answer === undefined || record.code !== 200 || record.method !== 'GET') return
    const lists = this.#clusters().get(cluster)?.lists
    if (lists === undefined) return
    lists.onLearned ??= (size) => this.#tell(cluster, size)
    const seen = seenOf(list, answer, record.aborted === '', this.#now())
    lists.learn(record, list, seen)
  }

  #tell(cluster: string, size: ListSize): void {
    const first = this.#learned.size === 0
    const sizes = this.#learned.get(cluster)
    if (sizes === undefined) this.#learned.set(cluster, [size])
    else sizes.push(size)
    if (first) setImmediate(() => this.#flush())
  }

  #flush(): void {
    const learned = this.#learned
    this.#learned = new Map()
    for (const [cluster, sizes] of learned) this.#post({ type: 'lists-learned', cluster, sizes })
  }

  /** Merges what other threads have learned. */
  merge(cluster: string, sizes: readonly ListSize[]): void {
    const lists = this.#clusters().get(cluster)?.lists
    for (const size of sizes) lists?.merge(size)
  }
}
