// The filter: answers a read itself if what is kept proves the answer, and the cluster allows the caller to read it. All else is forwarded unchanged.

import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import { type AnswerForm, type ListPieces, MOST_ENCODED_BYTES, metadataBytes } from '../core/bytes/answer-form.ts'
import { writable } from '../core/bytes/malformed.ts'
import { type CollectionId, type FreshnessQuestion, SMALL_BYTES } from '../core/changes/collection.ts'
import type { CountedResource } from '../core/changes/read-counts.ts'
import {
  type CacheResult,
  type Freshness,
  isNamespaces,
  type ListRead,
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
import { type KeptForm, keptForm } from './kept-form.ts'
import type { OpenWatches } from './open-watches.ts'
import { PIECE_BYTES } from './pieces.ts'
import { rightTo } from './rights.ts'
import { inSlices, scan } from './scan.ts'
import { type Selects, selectionOf } from './selection.ts'
import { sharedList } from './shared-parts.ts'
import { beginWatch, CollectionWatch, type WatchStart } from './watch-answer.ts'

/** As kube-apiserver: how long a version may take to arrive. */
const FRESH_MS = 3_000
const ALL: Selects = () => true

interface ReadCacheDeps {
  readonly collections: CachedCollections
  readonly watches: OpenWatches
  readonly counted: (of: CountedResource, result: CacheResult) => void
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
    // What has members is answered by another filter, and has no servers whose bytes are kept.
    if (cache === undefined || decision.deliver !== undefined) return undefined
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
    const chosen =
      kept !== '' && !namespaces.includes(kept)
        ? 'unavailable'
        : keptForm(decision, request.kind, this.#deps.collections, entry, {
            cluster: decision.cluster.name,
            group,
            version,
            resource,
            namespace: kept,
          })
    if (typeof chosen === 'string') {
      this.#count(decision, chosen)
      return undefined
    }
    if ('missing' in chosen) {
      void this.#want(decision, request, chosen.missing)
      this.#count(decision, 'unavailable')
      return undefined
    }
    const { collection } = chosen
    if (collection.awayFor(exchange.monotonicMs) > entry.maxStalenessMs) this.#count(decision, 'stale')
    // Without any object it is not known whether the resource has namespaces, and so whether the path exists.
    else if ((namespace !== '') !== collection.isNamespaced && (namespace !== '' || request.kind === 'get'))
      this.#count(decision, 'missing')
    else return this.#decide(decision, request, chosen, namespace)
    return undefined
  }

  /** A caller must not make the gateway read all of what it may not read. The request is forwarded meanwhile. */
  async #want(decision: Decision, request: ReadRequest, id: CollectionId): Promise<void> {
    const { collections } = this.#deps
    if (!collections.isWantDue(id)) return
    const right = await rightTo(request, decision).catch(() => 'unknown')
    if (right === 'allowed') collections.wanted(id)
  }

  #requestOf({ exchange, info, isUpgrade, deliver }: Decision): ReadRequest | PassReason {
    // A body is for the cluster to refuse.
    if (isUpgrade || !exchange.requestEnded || exchange.body !== undefined || deliver !== undefined) return 'parameters'
    return readRequestOf(info, exchange.record.method, exchange.target)
  }

  async #decide(decision: Decision, request: ReadRequest, chosen: KeptForm, namespace: string): Promise<undefined> {
    const pass = await this.#prepare(decision, request, chosen, namespace)
    if (pass !== undefined) this.#count(decision, pass)
  }

  /** Sets `decision.deliver`. @returns why it does not */
  async #prepare(
    decision: Decision,
    request: ReadRequest,
    chosen: KeptForm,
    namespace: string,
  ): Promise<PassReason | undefined> {
    const { collection, form } = chosen
    const selects = request.kind === 'get' ? undefined : selectionOf(request, namespace, collection)
    if (request.kind !== 'get' && selects === undefined) return 'selector'
    if ((await rightTo(request, decision)) !== 'allowed') return 'rights'
    if (collection.id.encoding === 'protobuf') this.#deps.collections.wanted(collection.id)
    if (request.kind === 'watch') return await this.#prepareWatch(decision, request, chosen, namespace, selects ?? ALL)
    const whole = request.kind === 'list' && namespace === collection.id.namespace && isUnselected(request)
    const state = await this.#wait(request.freshness, collection, { atOnce: collection.bytes < SMALL_BYTES, whole })
    if (typeof state === 'string') return state
    if (collection.isGone) return 'unavailable'
    const hit = (): void => this.#count(decision, 'hit')
    if (request.kind === 'get') {
      const object = collection.get(namespace, decision.info.name)
      if (object === undefined) return 'missing'
      const answer = writable(() => form.object(object))
      if (answer === undefined) return 'encoding'
      if (!decision.exchange.takeMemory(answer.length)) return 'memory'
      decision.deliver = deliverObject(collection, answer, form, hit)
    } else {
      const { version } = state
      const objects = await this.#select(decision, collection, namespace, isUnselected(request) ? undefined : selects)
      if (typeof objects === 'string') return objects
      const answer = await listOf(decision.exchange, form, collection, version, objects)
      if (typeof answer === 'string') {
        decision.exchange.giveMemory(memoryFor(objects.length))
        return answer
      }
      const { length = bytesOf(objects), items } = answer
      const nowMs = (): number => decision.exchange.gw.clock.monotonic()
      const share =
        items && isUnselected(request)
          ? () => sharedList(this.#deps.collections, chosen, namespace, { objects, items, length }, nowMs())
          : undefined
      decision.deliver = deliverList(collection, answer, length, form, hit, share)
    }
    return undefined
  }

  async #prepareWatch(
    decision: Decision,
    request: WatchRead,
    { collection, form }: KeptForm,
    namespace: string,
    selects: Selects,
  ): Promise<PassReason | undefined> {
    const { initial, after, bookmarks, timeoutSeconds } = request
    const state =
      initial === undefined
        ? { version: after }
        : await this.#wait(initial, collection, { atOnce: false, whole: false })
    if (typeof state === 'string') return state
    if (collection.isGone) return 'unavailable'
    const { version } = state
    const { history } = collection
    const from = initial === undefined ? history.behind(after) : history.end
    if (from === undefined) return 'history'
    const chosen = isUnselected(request) ? undefined : selects
    const objects = initial === undefined ? undefined : await this.#select(decision, collection, namespace, chosen)
    if (typeof objects === 'string') return objects
    const start: WatchStart = {
      streamType: form.streamType,
      warned: collection,
      state: objects && {
        objects: objects.length,
        bytes: bytesOf(objects),
        events: form.added(objects, PIECE_BYTES),
      },
      from,
      bookmarks,
      timeoutSeconds,
    }
    const { watches } = this.#deps
    decision.deliver = (permit) => {
      this.#count(decision, 'hit')
      const source = new CollectionWatch(collection, form, selects, version)
      return beginWatch(permit, source, start, watches, () => rightTo(request, permit))
    }
    return undefined
  }

  /** Until the collection is as new as the answer has to be. @returns at which version it is the state; or why it is not */
  async #wait(
    freshness: Freshness,
    collection: CachedCollection,
    of: Pick<FreshnessQuestion, 'atOnce' | 'whole'>,
  ): Promise<{ readonly version: string } | PassReason> {
    if (freshness === 'consistent') {
      const version = await this.#deps.collections.currentVersion(collection, FRESH_MS, of)
      return version === undefined ? 'unproved' : { version }
    }
    if (freshness !== 'any' && !(await collection.reaches(freshness.notOlderThan, FRESH_MS))) return 'version'
    return collection
  }

  /** The memory for them is the caller's, until they are sent. @param selects undefined = all of the namespace */
  async #select(
    { exchange }: Decision,
    collection: CachedCollection,
    namespace: string,
    selects: Selects | undefined,
  ): Promise<readonly CachedObject[] | PassReason> {
    const { objects: sorted, from, to } = collection.range(namespace)
    const most = memoryFor(to - from)
    if (!exchange.takeMemory(most)) return 'memory'
    if (selects === undefined) return sorted.slice(from, to)
    const objects = await scan(exchange, collection, namespace, selects)
    exchange.giveMemory(most - memoryFor(objects.length))
    if (!collection.isGone) return objects
    exchange.giveMemory(memoryFor(objects.length))
    return 'unavailable'
  }

  #count({ cluster, info }: Decision, result: CacheResult): void {
    const { apiGroup: group, apiVersion: version, resource } = info
    this.#deps.counted({ cluster: cluster.name, group, version, resource }, result)
  }
}

function isUnselected({ labelSelector, fieldSelector }: ListRead | WatchRead): boolean {
  return labelSelector === '' && fieldSelector === ''
}

function bytesOf(objects: readonly CachedObject[]): number {
  return objects.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** Its own memory is the caller's, before there is any of it. */
async function listOf(
  exchange: Decision['exchange'],
  form: AnswerForm,
  { list }: CachedCollection,
  version: string,
  objects: readonly CachedObject[],
): Promise<ListPieces | PassReason> {
  const { encode } = form
  if (encode === undefined) return writable(() => form.list(list, version, objects)) ?? 'encoding'
  const taken = metadataBytes(objects)
  if (taken > MOST_ENCODED_BYTES) return 'encoding'
  if (!exchange.takeMemory(taken)) return 'memory'
  const encoded: Buffer[] = []
  await inSlices(exchange, objects, (object) => {
    const one = writable(() => encode(object))
    if (one !== undefined) encoded.push(one)
  })
  const answer = encoded.length < objects.length ? undefined : form.list(list, version, objects, encoded)
  const more = (answer?.ownBytes ?? 0) - taken
  if (more < 0) exchange.giveMemory(-more)
  if (answer === undefined) return 'encoding'
  if (more <= 0 || exchange.takeMemory(more)) return answer
  exchange.giveMemory(taken)
  return 'memory'
}
