// All collections that the UpstreamClusters name: starts and ends them, tries those again that could not be kept, and answers gateway threads.

import {
  type CachedResourceInForce,
  type CacheState,
  cacheStateRank,
} from '../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { CompiledCachedResource, CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import { CACHE_USER } from '../../gateway/core/identity/gateway-rights.ts'
import type { CallsAs } from '../../gateway/io/upstream/kube-client.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { Penalties, type PenaltyScale } from '../../kit/core/penalties/penalties.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import {
  type CollectionId,
  type CollectionNews,
  type CompressedRoom,
  type CurrentState,
  collectionKey,
  type FreshnessQuestion,
  resourceLabel,
  type ToldVersion,
} from '../core/changes/collection.ts'
import { countedKey, type ReadCount, ReadCounts } from '../core/changes/read-counts.ts'
import { type CachedFault, faultMessage, stateOf } from './cached-state.ts'
import { type CacheDropReason, FollowedCollection, kindOf } from './followed-collection.ts'
import { FreshnessProofs } from './freshness.ts'

/** When a resource that could not be kept is tried again: later each time, since each attempt lists all of it. */
const RETRY_DELAYS: Readonly<Record<CacheDropReason, PenaltyScale>> = {
  'over-budget': { firstMs: 300_000, growth: 1, longestMs: 300_000 },
  'no-room': { firstMs: 300_000, growth: 1, longestMs: 300_000 },
  unreadable: { firstMs: 60_000, growth: 2, longestMs: 600_000 },
  'went-back': { firstMs: 1_000, growth: 4, longestMs: 300_000 },
}
/** Half an hour after the last failure it begins with the first of these times again. */
const FORGOTTEN_MS = 1_800_000
/** How long a collection in Protobuf is kept that no client asks for. */
export const IDLE_MS = 600_000
/** Resources whose failures are remembered: more than a gateway follows. */
const MOST_REMEMBERED = 10_000

/** All namespaces of a resource. */
interface KeptSum {
  readonly objects: number
  readonly bytes: number
  readonly ageMs: number
  /** That are open at the cluster. */
  readonly watches: number
  readonly isServing: boolean
}

export interface CacheGauges {
  set(id: CollectionId, kept: KeptSum): void
  remove(id: CollectionId): void
}

interface ReadCachesDeps {
  readonly clusters: { values(): Iterable<{ readonly compiled: CompiledCluster }> }
  readonly clientOf: (cluster: string, as: CallsAs) => KubeClient
  readonly publish: (news: CollectionNews) => void
  readonly gauges: CacheGauges
  /** Gateway threads. */
  readonly threads: number
  readonly clock: Clock
  readonly log: Logger
}

interface Wanted {
  readonly id: CollectionId
  readonly entry: CompiledCachedResource
  /** Where its entry is: `spec.cache[0]`. */
  readonly place: string
  /** With another one it begins again. */
  readonly origin: string
}

/** One collection, kept or waiting to be tried again. */
interface Kept extends Omit<Wanted, 'place'> {
  /** It moves when others are added before it. */
  place: string
  readonly client: KubeClient
  collection: FollowedCollection | undefined
  freshness: FreshnessProofs | undefined
  retry: NodeJS.Timeout | undefined
  /** Why it is not kept; undefined = it is. */
  fault: CachedFault | undefined
  state: CacheState
  /** Since when, milliseconds since the epoch. */
  sinceMs: number
}

export class ReadCaches {
  readonly #deps: ReadCachesDeps
  readonly #kept = new Map<string, Kept>()
  readonly #ending = new Set<Promise<unknown>>()
  readonly #failures = new Penalties(FORGOTTEN_MS, MOST_REMEMBERED)
  readonly #reads = new ReadCounts()
  /** When a thread was last asked for what is kept only as long as it is wanted: monotonic, by key. */
  readonly #wantedMs = new Map<string, number>()

  constructor(deps: ReadCachesDeps) {
    this.#deps = deps
  }

  /** The clusters may have changed. */
  update(): void {
    const all = new Map(this.#all().map((one) => [collectionKey(one.id), one]))
    for (const key of this.#wantedMs.keys()) if (!all.has(key)) this.#wantedMs.delete(key)
    const wanted = new Map([...all].filter(([key, { id }]) => id.encoding === 'json' || this.#wantedMs.has(key)))
    for (const [key, kept] of this.#kept) if (wanted.get(key)?.origin !== kept.origin) this.#end(key, kept)
    for (const [key, one] of wanted) {
      const kept = this.#kept.get(key)
      if (kept === undefined) this.#begin(key, one)
      else kept.place = one.place
    }
    this.#reads.retain(Array.from(this.#kept.values(), ({ id }) => id))
  }

  /** Reads that gateway threads have counted. */
  count(reads: readonly ReadCount[]): void {
    // A cluster may have been removed in the meantime.
    const kept = new Set(Array.from(this.#kept.values(), ({ id }) => countedKey(id)))
    this.#reads.addAll(reads.filter(({ id }) => kept.has(countedKey(id))))
  }

  /** All namespaces of a resource are one: the oldest, and the one in the worst state, count. */
  resourcesOf(cluster: string): readonly CachedResourceInForce[] {
    const found = [...this.#kept.values()].filter(({ id }) => id.cluster === cluster)
    const groups = Map.groupBy(found, ({ id }) => countedKey(id))
    return [...groups.values()].flatMap((parts) => this.#shown(parts) ?? [])
  }

  /** A thread has begun, and knows nothing. */
  tellAll(): void {
    for (const { collection } of this.#kept.values()) collection?.tellAll()
  }

  /** A client has asked for what is kept only as long as it is wanted. */
  want(id: CollectionId): void {
    const key = collectionKey(id)
    const one = this.#kept.has(key) ? undefined : this.#all().find((other) => collectionKey(other.id) === key)
    if (one === undefined && !this.#kept.has(key)) return
    this.#wantedMs.set(key, this.#deps.clock.monotonic())
    if (one !== undefined) this.#begin(key, one)
  }

  /** Clients get lists of it that could be kept compressed. */
  wantRoom({ collection, bytes }: CompressedRoom): void {
    this.#kept.get(collectionKey(collection))?.collection?.wantRoom(bytes)
  }

  /** What is current; undefined = that cannot be proved. */
  async prove(question: FreshnessQuestion): Promise<CurrentState | undefined> {
    return await this.#kept.get(collectionKey(question.collection))?.freshness?.prove(question)
  }

  /** Clients have been told of a version that is not known here. */
  reach({ collection, version }: ToldVersion): void {
    void this.#kept.get(collectionKey(collection))?.freshness?.reach(version)
  }

  /** Ends what is not wanted any more, notes changes of state, and sets the gauges. */
  tick(): void {
    const nowMs = this.#deps.clock.monotonic()
    for (const [key, wantedMs] of this.#wantedMs) {
      if (nowMs - wantedMs < IDLE_MS) continue
      this.#wantedMs.delete(key)
      const kept = this.#kept.get(key)
      if (kept !== undefined) this.#end(key, kept)
    }
    for (const kept of this.#kept.values()) this.#note(kept).collection?.tick(nowMs)
    this.#setGauges()
  }

  /** All namespaces of a resource are one: the oldest counts. What is kept in a second encoding adds its bytes and its watch. */
  #setGauges(): void {
    const sums = new Map<string, KeptSum & { id: CollectionId }>()
    for (const { id, collection, state } of this.#kept.values()) {
      const isSecond = this.#isSecond(id)
      const key = `${id.cluster}/${resourceLabel(id)}`
      const before = sums.get(key)
      sums.set(key, {
        id,
        objects: (before?.objects ?? 0) + (isSecond ? 0 : (collection?.objects ?? 0)),
        bytes: (before?.bytes ?? 0) + (collection?.bytes ?? 0),
        ageMs: Math.max(before?.ageMs ?? 0, isSecond ? 0 : (collection?.ageMs ?? 0)),
        watches: (before?.watches ?? 0) + (collection?.isFollowed === true ? 1 : 0),
        isServing: (before?.isServing ?? true) && (isSecond || state === 'Serving'),
      })
    }
    for (const { id, ...kept } of sums.values()) this.#deps.gauges.set(id, kept)
  }

  /** The same objects are kept as JSON, all the time. */
  #isSecond(id: CollectionId): boolean {
    return id.encoding === 'protobuf' && this.#kept.has(collectionKey({ ...id, encoding: 'json' }))
  }

  describe(): object {
    return Array.from(this.#kept.values(), (kept) => this.#note(kept)).map(({ id, collection, state, ...kept }) => ({
      cluster: id.cluster,
      resource: resourceLabel(id),
      version: id.version,
      namespace: id.namespace,
      encoding: id.encoding,
      objects: collection?.objects ?? 0,
      bytes: collection?.bytes ?? 0,
      resourceVersion: collection?.version ?? '',
      state,
      message: faultMessage({ ...kept, id, collection }),
    }))
  }

  async stop(): Promise<void> {
    for (const [key, kept] of this.#kept) this.#end(key, kept)
    await Promise.all(this.#ending)
  }

  /** Everything that the clusters name. */
  #all(): readonly Wanted[] {
    return Array.from(this.#deps.clusters.values(), ({ compiled }) => {
      return (compiled.cache ?? []).flatMap((entry, index) =>
        entry.namespaces.flatMap((namespace) =>
          entry.encodings.map((encoding) => {
            const { group, version, resource } = entry
            const id = { cluster: compiled.name, group, version, resource, namespace, encoding }
            return { id, entry, place: `spec.cache[${index}]`, origin: originOf(compiled, entry) }
          }),
        ),
      )
    }).flat()
  }

  #begin(key: string, wanted: Wanted): void {
    const client = this.#deps.clientOf(wanted.id.cluster, {
      user: CACHE_USER,
      stays: true,
      onWarnings: (values) => kept.collection?.warned(values),
    })
    const nothing = { collection: undefined, freshness: undefined, retry: undefined, fault: undefined }
    const kept: Kept = { ...wanted, client, ...nothing, state: 'Loading', sinceMs: this.#deps.clock.now() }
    this.#kept.set(key, kept)
    this.#follow(kept)
  }

  #follow(kept: Kept): void {
    const { publish, clock, log } = this.#deps
    const { id, client, entry } = kept
    const collection = new FollowedCollection(
      id,
      { maxBytes: entry.maxBytes, threads: this.#deps.threads },
      {
        client,
        publish,
        dropped: (reason, message) => this.#dropped(kept, reason, message),
        resumed: () => void kept.freshness?.confirm(),
        clock,
        log,
      },
    )
    kept.collection = collection
    kept.fault = undefined
    kept.freshness = new FreshnessProofs(collection, client.pages(kindOf(id), id.namespace), clock)
  }

  #dropped(kept: Kept, reason: CacheDropReason, message: string): void {
    kept.collection = undefined
    kept.fault = { reason, message }
    this.#note(kept)
    const nowMs = this.#deps.clock.monotonic()
    const forMs = this.#failures.charge(collectionKey(kept.id), 1, RETRY_DELAYS[reason], nowMs)
    kept.retry = setTimeout(() => this.#follow(kept), forMs)
    kept.retry.unref()
  }

  #note(kept: Kept): Kept {
    const state = stateOf(kept)
    if (state !== kept.state) {
      kept.state = state
      kept.sinceMs = this.#deps.clock.now()
    }
    return kept
  }

  /** @param parts its namespaces, in each encoding */
  #shown(parts: readonly Kept[]): CachedResourceInForce | undefined {
    const firsts = parts.filter(({ id: part }) => !this.#isSecond(part))
    const [worst] = firsts
      .map((part) => this.#note(part))
      .sort((a, b) => cacheStateRank(a.state) - cacheStateRank(b.state))
    if (worst === undefined) return undefined
    const { id, state, sinceMs } = worst
    const collectionsOf = (some: readonly Kept[]): readonly FollowedCollection[] =>
      some.flatMap(({ collection }) => (collection === undefined ? [] : [collection]))
    const collections = collectionsOf(firsts)
    const ages = collections.flatMap(({ version, ageMs }) => (version === '' ? [] : [ageMs]))
    const { hit: hits = 0, ...passes } = this.#reads.of(id)
    return {
      resource: resourceLabel(id),
      version: id.version,
      state,
      sinceMs,
      message: faultMessage(worst),
      objects: collections.reduce((sum, { objects }) => sum + objects, 0),
      bytes: collectionsOf(parts).reduce((sum, { bytes }) => sum + bytes, 0),
      ageMs: ages.length === 0 ? undefined : Math.max(...ages),
      hits,
      passes,
    }
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
