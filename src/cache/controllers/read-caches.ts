// All collections that the UpstreamClusters name: starts and ends them, tries those again that could not be kept, and answers gateway threads.

import type { CompiledCachedResource, CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { CallsAs } from '../../gateway/io/upstream/kube-client.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { Penalties, type PenaltyScale } from '../../kit/core/penalties/penalties.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import {
  type CollectionId,
  type CollectionNews,
  collectionKey,
  type FreshnessQuestion,
  resourceLabel,
} from '../core/changes/collection.ts'
import { type CacheDropReason, FollowedCollection, kindOf } from './followed-collection.ts'
import { FreshnessProofs } from './freshness.ts'

/** The user that the gateway reads as: deploy/rbac/read-cache.yaml grants it that. */
export const CACHE_USER = 'portcullis-cache'

/** When a resource that could not be kept is tried again: later each time, since each attempt lists all of it. */
const RETRY_DELAYS: Readonly<Record<CacheDropReason, PenaltyScale>> = {
  'over-budget': { firstMs: 300_000, growth: 1, longestMs: 300_000 },
  unreadable: { firstMs: 60_000, growth: 2, longestMs: 600_000 },
  'went-back': { firstMs: 1_000, growth: 4, longestMs: 300_000 },
}
/** Half an hour after the last failure it begins with the first of these times again. */
const FORGOTTEN_MS = 1_800_000
/** Resources whose failures are remembered: more than a gateway follows. */
const MOST_REMEMBERED = 10_000

export interface CacheGauges {
  set(id: CollectionId, objects: number, bytes: number, ageMs: number): void
  remove(id: CollectionId): void
}

interface ReadCachesDeps {
  readonly clusters: { values(): Iterable<{ readonly compiled: CompiledCluster }> }
  readonly clientOf: (cluster: string, as: CallsAs) => KubeClient
  readonly publish: (news: CollectionNews) => void
  readonly gauges: CacheGauges
  readonly clock: Clock
  readonly log: Logger
}

interface Wanted {
  readonly id: CollectionId
  readonly entry: CompiledCachedResource
  /** With another one it begins again. */
  readonly origin: string
}

/** One collection, kept or waiting to be tried again. */
interface Kept extends Wanted {
  readonly client: KubeClient
  collection: FollowedCollection | undefined
  freshness: FreshnessProofs | undefined
  retry: NodeJS.Timeout | undefined
  /** Why it is not kept; ''. */
  message: string
}

export class ReadCaches {
  readonly #deps: ReadCachesDeps
  readonly #kept = new Map<string, Kept>()
  readonly #ending = new Set<Promise<unknown>>()
  readonly #failures = new Penalties(FORGOTTEN_MS, MOST_REMEMBERED)

  constructor(deps: ReadCachesDeps) {
    this.#deps = deps
  }

  /** The clusters may have changed. */
  update(): void {
    const wanted = new Map(this.#wanted().map((one) => [collectionKey(one.id), one]))
    for (const [key, kept] of this.#kept) if (wanted.get(key)?.origin !== kept.origin) this.#end(key, kept)
    for (const [key, one] of wanted) if (!this.#kept.has(key)) this.#begin(key, one)
  }

  /** A thread has begun, and knows nothing. */
  tellAll(): void {
    for (const { collection } of this.#kept.values()) collection?.tellAll()
  }

  /** A version that is current; undefined = that cannot be proved. */
  async prove({ collection, atOnce }: FreshnessQuestion): Promise<string | undefined> {
    return await this.#kept.get(collectionKey(collection))?.freshness?.prove(atOnce)
  }

  /** Sets the gauges: of all namespaces of a resource together, the oldest counts. */
  tick(): void {
    const sums = new Map<string, { id: CollectionId; objects: number; bytes: number; ageMs: number }>()
    for (const { id, collection } of this.#kept.values()) {
      const key = `${id.cluster}/${resourceLabel(id)}`
      const { objects, bytes, ageMs } = sums.get(key) ?? { objects: 0, bytes: 0, ageMs: 0 }
      sums.set(key, {
        id,
        objects: objects + (collection?.objects ?? 0),
        bytes: bytes + (collection?.bytes ?? 0),
        ageMs: Math.max(ageMs, collection?.ageMs ?? 0),
      })
    }
    for (const { id, objects, bytes, ageMs } of sums.values()) this.#deps.gauges.set(id, objects, bytes, ageMs)
  }

  describe(): object {
    return Array.from(this.#kept.values(), ({ id, collection, message }) => ({
      cluster: id.cluster,
      resource: resourceLabel(id),
      version: id.version,
      namespace: id.namespace,
      objects: collection?.objects ?? 0,
      bytes: collection?.bytes ?? 0,
      resourceVersion: collection?.version ?? '',
      message: collection?.message ?? message,
    }))
  }

  async stop(): Promise<void> {
    for (const [key, kept] of this.#kept) this.#end(key, kept)
    await Promise.all(this.#ending)
  }

  #wanted(): readonly Wanted[] {
    return Array.from(this.#deps.clusters.values(), ({ compiled }) => {
      return (compiled.cache ?? []).flatMap((entry) =>
        entry.namespaces.map((namespace) => {
          const { group, version, resource } = entry
          const id = { cluster: compiled.name, group, version, resource, namespace }
          return { id, entry, origin: originOf(compiled, entry) }
        }),
      )
    }).flat()
  }

  #begin(key: string, wanted: Wanted): void {
    const client = this.#deps.clientOf(wanted.id.cluster, { user: CACHE_USER, stays: true })
    const kept: Kept = { ...wanted, client, collection: undefined, freshness: undefined, retry: undefined, message: '' }
    this.#kept.set(key, kept)
    this.#follow(kept)
  }

  #follow(kept: Kept): void {
    const { publish, clock, log } = this.#deps
    const { id, client, entry } = kept
    const collection = new FollowedCollection(id, entry, {
      client,
      publish,
      dropped: (reason, message) => this.#dropped(kept, reason, message),
      clock,
      log,
    })
    kept.collection = collection
    kept.message = ''
    kept.freshness = new FreshnessProofs(collection, client.pages(kindOf(id), id.namespace), clock)
  }

  #dropped(kept: Kept, reason: CacheDropReason, message: string): void {
    kept.collection = undefined
    kept.message = message
    const nowMs = this.#deps.clock.monotonic()
    const forMs = this.#failures.charge(collectionKey(kept.id), 1, RETRY_DELAYS[reason], nowMs)
    kept.retry = setTimeout(() => this.#follow(kept), forMs)
    kept.retry.unref()
  }

  #end(key: string, kept: Kept): void {
    this.#kept.delete(key)
    clearTimeout(kept.retry)
    this.#deps.publish({ type: 'gone', collection: kept.id })
    this.#deps.gauges.remove(kept.id)
    const ended = Promise.resolve(kept.collection?.stop()).then(() => kept.client.close())
    this.#ending.add(ended)
    void ended.finally(() => this.#ending.delete(ended))
  }
}

/** What else than the resource decides what is kept: versions of another cluster mean nothing, and other limits need another look. */
function originOf({ endpoints, client }: CompiledCluster, entry: CompiledCachedResource): string {
  const servers = [...new Set(endpoints.map(({ url, of }) => of?.url ?? url))].sort()
  return JSON.stringify([servers, client.ca, client.serverName, entry.maxBytes])
}
