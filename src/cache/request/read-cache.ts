// The filter: answers a read itself if what is kept proves the answer, and the cluster allows the caller to read it. All else is forwarded unchanged.

import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import { resourceLabel } from '../core/changes/collection.ts'
import {
  type CacheResult,
  type Freshness,
  isNamespaces,
  type PassReason,
  type ReadRequest,
  readRequestOf,
  type WatchRead,
} from '../core/requests/read-request.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedCollections } from '../state/cached-collections.ts'
import type { CachedObject } from '../state/cached-object.ts'
import { deliverList, deliverObject } from './deliver-read.ts'
import { memoryFor } from './delivery-limits.ts'
import type { OpenWatches } from './open-watches.ts'
import { rightTo } from './rights.ts'
import { type Selects, selectionOf } from './selection.ts'
import { WatchAnswer, type WatchStart } from './watch-answer.ts'

/** As kube-apiserver: how long a version may take to arrive. */
const FRESH_MS = 3_000
/** A smaller list is sent by the cluster before a quiet collection is proved to be current. */
const SMALL_BYTES = 1024 * 1024
/** How long a watch that does not say so lasts, at least; at most twice that (apiserver: --min-request-timeout). */
const LEAST_WATCH_SECONDS = 1_800
const SECOND_MS = 1_000
const ALL: Selects = () => true

interface ReadCacheDeps {
  readonly collections: CachedCollections
  readonly watches: OpenWatches
  readonly counted: (cluster: string, resource: string, result: CacheResult) => void
}

export class ReadCacheFilter implements RequestFilter {
  readonly #deps: ReadCacheDeps

  constructor(deps: ReadCacheDeps) {
    this.#deps = deps
  }

  shadow(): boolean {
    return false
  }

  check(decision: Decision): Promise<undefined> | undefined {
    const { cache } = decision.cluster
    if (cache === undefined) return undefined
    const { info, exchange } = decision
    if (!info.isResourceRequest || (info.verb !== 'get' && info.verb !== 'list' && info.verb !== 'watch'))
      return undefined
    const entry = cache.find(({ group, version, resource }) => {
      return resource === info.resource && group === info.apiGroup && version === info.apiVersion
    })
    if (entry === undefined || info.subresource !== '') return undefined
    const request = this.#requestOf(decision)
    if (typeof request === 'string') {
      this.#count(decision, request)
      return undefined
    }
    const namespace = isNamespaces(info.apiGroup, info.resource) ? '' : info.namespace
    const { group, version, resource, namespaces } = entry
    const kept = namespaces.includes('') ? '' : namespace
    const collection = this.#deps.collections.get({
      cluster: decision.cluster.name,
      group,
      version,
      resource,
      namespace: kept,
    })
    if (collection === undefined) this.#count(decision, 'unavailable')
    else if (collection.awayFor(exchange.monotonicMs) > entry.maxStalenessMs) this.#count(decision, 'stale')
    // Without any object it is not known whether the resource has namespaces, and so whether the path exists.
    else if ((namespace !== '') !== collection.isNamespaced && (namespace !== '' || request.kind === 'get'))
      this.#count(decision, 'missing')
    else return this.#decide(decision, request, collection, namespace)
    return undefined
  }

  #requestOf({ exchange, info, isUpgrade, userAgent, deliver }: Decision): ReadRequest | PassReason {
    // A body is for the cluster to refuse.
    if (isUpgrade || !exchange.requestEnded || exchange.body !== undefined || deliver !== undefined) return 'parameters'
    const accept = headerValue(exchange.list, 'accept') ?? ''
    return readRequestOf(info, exchange.target, { method: exchange.record.method, accept, userAgent })
  }

  async #decide(
    decision: Decision,
    request: ReadRequest,
    collection: CachedCollection,
    namespace: string,
  ): Promise<undefined> {
    const pass = await this.#prepare(decision, request, collection, namespace)
    if (pass !== undefined) this.#count(decision, pass)
  }

  /** Sets `decision.deliver`. @returns why it does not */
  async #prepare(
    decision: Decision,
    request: ReadRequest,
    collection: CachedCollection,
    namespace: string,
  ): Promise<PassReason | undefined> {
    const selects = request.kind === 'get' ? undefined : selectionOf(request, namespace, collection)
    if (request.kind !== 'get' && selects === undefined) return 'selector'
    if ((await rightTo(request, decision)) !== 'allowed') return 'rights'
    if (request.kind === 'watch')
      return await this.#prepareWatch(decision, request, collection, namespace, selects ?? ALL)
    const stale = await this.#wait(request.freshness, collection, collection.bytes < SMALL_BYTES)
    if (stale !== undefined) return stale
    if (collection.isGone) return 'unavailable'
    const hit = (): void => this.#count(decision, 'hit')
    if (request.kind === 'get') {
      const object = collection.get(namespace, decision.info.name)
      if (object === undefined) return 'missing'
      decision.deliver = deliverObject(object, hit)
    } else {
      const objects = select(decision, collection, namespace, selects ?? ALL)
      if (!decision.exchange.takeMemory(memoryFor(objects))) return 'memory'
      decision.deliver = deliverList(collection, objects, hit)
    }
    return undefined
  }

  async #prepareWatch(
    decision: Decision,
    request: WatchRead,
    collection: CachedCollection,
    namespace: string,
    selects: Selects,
  ): Promise<PassReason | undefined> {
    const { initial, after, bookmarks, timeoutSeconds } = request
    const stale = initial === undefined ? undefined : await this.#wait(initial, collection, false)
    if (stale !== undefined) return stale
    if (collection.isGone) return 'unavailable'
    const { history } = collection
    const from = initial === undefined ? history.behind(after) : history.end
    if (from === undefined) return 'history'
    const { exchange } = decision
    const objects = initial === undefined ? undefined : select(decision, collection, namespace, selects)
    if (objects !== undefined && !exchange.takeMemory(memoryFor(objects))) return 'memory'
    const { clock, random } = exchange.gw
    const seconds = timeoutSeconds > 0 ? timeoutSeconds : LEAST_WATCH_SECONDS * (1 + random())
    const start: WatchStart = {
      selects,
      initial: objects,
      version: initial === undefined ? after : collection.version,
      from,
      bookmarks,
      endsMs: clock.monotonic() + seconds * SECOND_MS,
    }
    const { watches } = this.#deps
    decision.deliver = (permit) => {
      this.#count(decision, 'hit')
      const watch = new WatchAnswer(permit, collection, start, watches.left)
      watches.add(watch, request)
      watch.begin()
      return Promise.resolve(undefined)
    }
    return undefined
  }

  /** Until the collection is as new as the answer has to be. @returns why it is not */
  async #wait(freshness: Freshness, collection: CachedCollection, atOnce: boolean): Promise<PassReason | undefined> {
    if (freshness === 'any') return undefined
    if (freshness === 'consistent') {
      const isCurrent = await this.#deps.collections.isCurrent(collection, FRESH_MS, atOnce)
      return isCurrent ? undefined : 'unproved'
    }
    return (await collection.reaches(freshness.notOlderThan, FRESH_MS)) ? undefined : 'version'
  }

  #count({ cluster, info }: Decision, result: CacheResult): void {
    this.#deps.counted(cluster.name, resourceLabel({ group: info.apiGroup, resource: info.resource }), result)
  }
}

/** All objects may be looked at for an answer that has none of them: the time is the caller's. */
function select(
  { exchange }: Decision,
  collection: CachedCollection,
  namespace: string,
  selects: Selects,
): readonly CachedObject[] {
  const startMs = performance.now()
  const objects = collection.select(namespace, selects)
  const endMs = performance.now()
  threadScheduler.charge(threadScheduler.accountOf(exchange.charge, endMs), startMs, endMs)
  return objects
}
