// The filter of the read cache in a gateway thread, with what it keeps and counts.

import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import { CallError } from '../../kit/core/topics/call-error.ts'
import type { AsksMain } from '../../kit/core/topics/questions.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { addTickable } from '../../kit/io/world/coarse-ticker.ts'
import { type CollectionId, resourceLabel } from '../core/changes/collection.ts'
import { ReadCounts } from '../core/changes/read-counts.ts'
import { CACHE_REQUESTS, CACHE_WATCHERS } from '../metrics/descriptors.ts'
import { OpenWatches } from '../request/open-watches.ts'
import { ReadCacheFilter } from '../request/read-cache.ts'
import { CachedCollections } from '../state/cached-collections.ts'
import { CACHE_NEWS, CACHE_READS, CACHE_ROOM, CACHE_TOLD, CACHE_UNKNOWN, CACHE_WANTED, FRESHNESS } from './topics.ts'

export interface CacheThread {
  readonly metrics: Pick<MetricsRecorder, 'add' | 'set'>
  readonly topics: TopicChannel
  readonly questions: AsksMain
}

/** What is kept in a gateway thread. */
export interface KeptReads {
  readonly collections: CachedCollections
  readonly watches: OpenWatches
}

/** By the end of the topics of their thread. */
const KEPT = new WeakMap<TopicChannel, KeptReads>()

export function cacheFilters(thread: CacheThread): SubjectFilters {
  const { metrics, topics } = thread
  const { collections, watches } = keptReadsOf(thread)
  const counts = new ReadCounts()
  addTickable({ tick: () => tell(counts, topics) })
  return {
    'read-cache': new ReadCacheFilter({
      collections,
      watches,
      counted: (of, result) => {
        metrics.add(CACHE_REQUESTS, 1, of.cluster, resourceLabel(of), result)
        counts.add(of, result)
      },
    }),
  }
}

/** Once for each thread: whatever answers reads there, objects are kept once. */
export function keptReadsOf({ metrics, topics, questions }: CacheThread): KeptReads {
  const known = KEPT.get(topics)
  if (known !== undefined) return known
  const collections = new CachedCollections(
    systemClock,
    (question, ms) => questions.ask(FRESHNESS, question, ms).catch(unanswered),
    () => topics.publish(CACHE_UNKNOWN, undefined),
    (id) => topics.publish(CACHE_WANTED, id),
    (wanted) => topics.publish(CACHE_ROOM, wanted),
    (told) => topics.publish(CACHE_TOLD, told),
  )
  const watches = new OpenWatches(() => systemClock.monotonic())
  // For as long as the thread lives.
  addTickable(watches)
  addTickable({
    tick: () => {
      countWatchers(collections, metrics)
      for (const { id, watchers } of collections.values())
        if (id.encoding === 'protobuf' && watchers.size > 0) collections.wanted(id)
    },
  })
  topics.subscribe(CACHE_NEWS, (news) => collections.apply(news))
  topics.publish(CACHE_UNKNOWN, undefined)
  const kept = { collections, watches }
  KEPT.set(topics, kept)
  return kept
}

/** Then nothing is proved. */
function unanswered(error: unknown): undefined {
  if (!(error instanceof CallError)) throw error
}

function tell(counts: ReadCounts, topics: TopicChannel): void {
  const counted = counts.take()
  if (counted.length > 0) topics.publish(CACHE_READS, counted)
}

function countWatchers(collections: CachedCollections, metrics: Pick<MetricsRecorder, 'set'>): void {
  const counts = new Map<string, { readonly id: CollectionId; watchers: number }>()
  for (const { id, watchers } of collections.values()) {
    const key = `${id.cluster}/${resourceLabel(id)}`
    const count = counts.get(key) ?? { id, watchers: 0 }
    count.watchers += watchers.size
    counts.set(key, count)
  }
  for (const { id, watchers } of counts.values()) metrics.set(CACHE_WATCHERS, watchers, id.cluster, resourceLabel(id))
}
