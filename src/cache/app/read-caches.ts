// Wires the read cache in the main thread.

import type { ReadCacheInForce } from '../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { CallsAs } from '../../gateway/io/upstream/kube-client.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { AnswersThreads } from '../../kit/core/topics/questions.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { addTickable, removeTickable } from '../../kit/io/world/coarse-ticker.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import { Started } from '../../process/components/component.ts'
import { type CacheGauges, ReadCaches } from '../controllers/read-caches.ts'
import { type CollectionId, collectionKey, resourceLabel } from '../core/changes/collection.ts'
import {
  CACHE_AGE,
  CACHE_BYTES,
  CACHE_OBJECTS,
  CACHE_REQUESTS,
  CACHE_SERVING,
  CACHE_UPSTREAM_WATCHES,
  CACHE_WATCHERS,
} from '../metrics/descriptors.ts'
import { CACHE_NEWS, CACHE_READS, CACHE_ROOM, CACHE_TOLD, CACHE_UNKNOWN, CACHE_WANTED, FRESHNESS } from './topics.ts'

interface CacheDeps {
  readonly config: { readonly threads: number }
  readonly clusters: { values(): Iterable<{ readonly compiled: CompiledCluster }> }
  readonly onApplied: (listener: () => void) => () => void
  readonly clientOf: (cluster: string, as?: CallsAs) => KubeClient
  readonly metrics: Pick<GatewayMetrics, 'families'>
  readonly topics: TopicChannel
  readonly questions: AnswersThreads
  readonly clock: Clock
  readonly log: Logger
}

interface RunningCaches extends ReadCacheInForce {
  describe(): object
  stop(): Promise<void>
}

const SECOND_MS = 1_000

export function createReadCaches(deps: CacheDeps): ReadCachesComponent {
  return new ReadCachesComponent(deps)
}

class ReadCachesComponent extends Started<RunningCaches> {
  readonly state = 'readCache'
  readonly readCache: ReadCacheInForce = {
    resourcesOf: (cluster) => this.running?.resourcesOf(cluster) ?? [],
  }

  constructor(deps: CacheDeps) {
    super('read-cache', () => startReadCaches(deps))
  }

  describe(): object | null {
    return this.running?.describe() ?? null
  }
}

function startReadCaches({
  config,
  clusters,
  onApplied,
  clientOf,
  metrics,
  topics,
  questions,
  clock,
  log,
}: CacheDeps): RunningCaches {
  const caches = new ReadCaches({
    clusters,
    clientOf,
    publish: (news) => topics.publish(CACHE_NEWS, news, collectionKey(news.collection)),
    gauges: gaugesOf(metrics),
    threads: config.threads,
    clock,
    log,
  })
  topics.subscribe(CACHE_UNKNOWN, () => caches.tellAll())
  topics.subscribe(CACHE_READS, (reads) => caches.count(reads))
  topics.subscribe(CACHE_WANTED, (id) => caches.want(id))
  topics.subscribe(CACHE_ROOM, (wanted) => caches.wantRoom(wanted))
  topics.subscribe(CACHE_TOLD, (told) => caches.reach(told))
  questions.answer(FRESHNESS, (question) => caches.prove(question))
  const leave = onApplied(() => caches.update())
  addTickable(caches)
  caches.update()
  return {
    describe: () => caches.describe(),
    resourcesOf: (cluster) => caches.resourcesOf(cluster),
    stop: async () => {
      leave()
      removeTickable(caches)
      await caches.stop()
    },
  }
}

function gaugesOf({ families }: Pick<GatewayMetrics, 'families'>): CacheGauges {
  // The threads count these: they are in /metrics before there is anything to count.
  for (const counted of [CACHE_REQUESTS, CACHE_WATCHERS]) families.of<readonly string[]>(counted)
  const objects = families.of(CACHE_OBJECTS)
  const bytes = families.of(CACHE_BYTES)
  const age = families.of(CACHE_AGE)
  const watches = families.of(CACHE_UPSTREAM_WATCHES)
  const serving = families.of(CACHE_SERVING)
  const labels = (id: CollectionId): [string, string] => [id.cluster, resourceLabel(id)]
  return {
    set: (id, kept) => {
      objects.set(kept.objects, ...labels(id))
      bytes.set(kept.bytes, ...labels(id))
      age.set(kept.ageMs / SECOND_MS, ...labels(id))
      watches.set(kept.watches, ...labels(id))
      serving.set(kept.isServing ? 1 : 0, ...labels(id))
    },
    remove: (id) => {
      for (const family of [objects, bytes, age, watches, serving]) family.remove(...labels(id))
    },
  }
}
