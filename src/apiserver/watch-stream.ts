// A watch: selected events of the store in the requested form, one JSON document per line
// (apiserver/pkg/endpoints/handlers/watch.go, storage/cacher/cache_watcher.go).

import type { JsonObject } from '../kit/api/json/json-object.ts'
import { ANSWER_WATER_BYTES, type Stream } from '../kit/api/stream.ts'
import { apiVersionOf, type ResourceKind, resourceName } from '../kube/api/resource-kind.ts'
import { failure } from '../kube/api/status.ts'
import type { IncludeObject } from '../kube/core/tables/include-object.ts'
import type { Shown } from './access/redaction.ts'
import { type ObjectStore, StoreCompacted, type StoreEvent } from './api/object-store.ts'
import type { Negotiated } from './http/accept.ts'
import { encode } from './http/answer.ts'
import { tooLargeRevision } from './list/list.ts'
import { isSelected, type WatchOptions } from './list/options.ts'
import { partialOf, tableBookmark, tableEventOf } from './list/tables.ts'
import { withMetadata } from './objects/object-metadata.ts'

export interface WatchRequest {
  readonly kind: ResourceKind
  readonly namespace: string
  readonly options: WatchOptions
  readonly encoding: Negotiated
  readonly includeObject: IncludeObject
  /** The object as the caller may see it. */
  readonly show: Shown
}

interface WatchDeps {
  readonly store: ObjectStore
  /** Wall clock, milliseconds. */
  now(): number
  /** In [0, 1). */
  random(): number
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** Either still to be serialized, or serialized and queued. */
type Waiting = { readonly type: EventType; readonly object: JsonObject } | Buffer

/** A watcher with more than this queued is ended: it would use up everyone's memory. */
export const MAX_WATCHER_BYTES: number = 4 * 1024 * 1024
const BOOKMARK_MS = 60_000
/** When kube-apiserver sends the last one of a watch, which read caches wait for. */
const BOOKMARK_BEFORE_END_MS = 2_000
/** kube-apiserver's --min-request-timeout: a watch without a timeout ends after one to two times this. */
const MIN_TIMEOUT_SECONDS = 1800
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end'
const EMPTY = Buffer.alloc(0)

export class WatchStream {
  readonly #deps: WatchDeps
  readonly #request: WatchRequest
  readonly #stream: Stream
  readonly #onEnd: () => void
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #bookmarkWaits = false
  /** Revision of the initial events. Events queued after them are newer, and must not count as sent. */
  #initialRevision = 0
  /** Initial objects are in the store's memory anyway: they don't count as queued. */
  #beginning = true
  #first = true
  #over = false
  #stopStore: () => void = () => undefined
  #bookmarkTimer: NodeJS.Timeout | undefined
  #lastBookmarkTimer: NodeJS.Timeout | undefined
  #endTimer: NodeJS.Timeout | undefined

  /** @param onEnd called once, however the watch ends */
  constructor(deps: WatchDeps, request: WatchRequest, stream: Stream, onEnd: () => void) {
    this.#deps = deps
    this.#request = request
    this.#stream = stream
    this.#onEnd = onEnd
  }

  /** Call it when the response head was sent. */
  start(): void {
    const { options } = this.#request
    const seconds = options.timeoutSeconds ?? MIN_TIMEOUT_SECONDS * (1 + this.#deps.random())
    this.#endTimer = setTimeout(() => this.finish(), seconds * 1000)
    const lastMs = seconds * 1000 - BOOKMARK_BEFORE_END_MS
    if (options.bookmarks) this.#bookmarkTimer = setInterval(() => this.#bookmark(), BOOKMARK_MS)
    if (options.bookmarks && lastMs > 0) this.#lastBookmarkTimer = setTimeout(() => this.#bookmark(), lastMs)
    this.#endTimer.unref()
    this.#bookmarkTimer?.unref()
    this.#lastBookmarkTimer?.unref()
    this.#begin()
    this.#beginning = false
    this.#pump()
  }

  /** Ends between two events: the client can resume. */
  finish(): void {
    if (this.#over) return
    if (this.#request.options.bookmarks && this.#waiting.length === 0) this.#bookmark()
    this.#stop()
    this.#stream.body(EMPTY, true)
  }

  onDrained(): void {
    this.#pump()
  }

  /** The client has disconnected. */
  onReset(): void {
    this.#stop()
  }

  #begin(): void {
    const { kind, namespace, options } = this.#request
    const { store } = this.#deps
    const { revision } = store
    let after = options.after ?? revision
    if (after > revision) {
      // The store was restored from a backup: its history differs from the client's.
      this.#fail(options.initialEvents ? tooLargeRevision(after, revision).status : tooOld(after, revision))
      return
    }
    if (options.initialEvents) {
      after = revision
      this.#initialRevision = revision
      for (const { object } of store.list(resourceName(kind), { namespace })) {
        if (isSelected(options, object)) this.#waiting.push({ type: 'ADDED', object })
      }
      this.#bookmarkWaits = options.initialBookmark
    }
    try {
      this.#stopStore = store.watch(resourceName(kind), namespace, after, (event) => this.#onEvent(event))
    } catch (error) {
      if (!(error instanceof StoreCompacted)) throw error
      this.#fail(tooOld(after, error.oldest))
    }
  }

  /** An object that leaves the selection is DELETED for this watcher, and one that enters it is ADDED. */
  #onEvent({ type, object, previous, revision }: StoreEvent): void {
    if (this.#over) return
    const { options } = this.#request
    const before = previous !== undefined && isSelected(options, previous)
    if (type === 'DELETED') {
      if (before) this.#emit('DELETED', object)
      return
    }
    const now = isSelected(options, object)
    if (now) this.#emit(before ? 'MODIFIED' : 'ADDED', object)
    else if (before) this.#emit('DELETED', withMetadata(previous, { resourceVersion: String(revision) }))
  }

  #emit(type: EventType, object: JsonObject): void {
    if (this.#beginning) {
      this.#waiting.push({ type, object })
      return
    }
    const behind = this.#waiting.length > 0 || this.#bookmarkWaits
    if (!behind && this.#stream.queued < ANSWER_WATER_BYTES) {
      this.#stream.body(this.#written(type, object), false)
      return
    }
    const line = this.#written(type, object)
    this.#waiting.push(line)
    this.#waitingBytes += line.length
    if (this.#waitingBytes + this.#stream.queued <= MAX_WATCHER_BYTES) return
    this.#stop()
    this.#stream.reset('cancel')
  }

  /** Sends as much as flow control allows. */
  #pump(): void {
    let at = 0
    while (!this.#over && at < this.#waiting.length && this.#stream.queued < ANSWER_WATER_BYTES) {
      const next = this.#waiting[at++]
      if (next === undefined) break
      if (Buffer.isBuffer(next)) this.#waitingBytes -= next.length
      this.#stream.body(Buffer.isBuffer(next) ? next : this.#written(next.type, next.object), false)
      if (this.#bookmarkWaits && !this.#hasInitial(at)) this.#initialBookmark()
    }
    this.#waiting = at === 0 ? this.#waiting : this.#waiting.slice(at)
    if (this.#bookmarkWaits && this.#waiting.length === 0 && !this.#over) this.#initialBookmark()
  }

  /** Whether initial events are still to be sent. */
  #hasInitial(from: number): boolean {
    const next = this.#waiting[from]
    return next !== undefined && !Buffer.isBuffer(next)
  }

  #initialBookmark(): void {
    this.#bookmarkWaits = false
    this.#stream.body(this.#bookmarkLine(this.#initialRevision, { [INITIAL_EVENTS_END]: 'true' }), false)
  }

  /** Sends a bookmark if no earlier events are queued. */
  #bookmark(): void {
    if (this.#over || this.#waiting.length > 0 || this.#bookmarkWaits) return
    if (this.#stream.queued >= ANSWER_WATER_BYTES) return
    this.#stream.body(this.#bookmarkLine(this.#deps.store.revision, undefined), false)
  }

  #bookmarkLine(revision: number, annotations: JsonObject | undefined): Buffer {
    const { kind, encoding } = this.#request
    const metadata: JsonObject = {
      resourceVersion: String(revision),
      ...(annotations !== undefined && { annotations }),
    }
    const object = { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata }
    switch (encoding.as) {
      case 'table': {
        const table = tableBookmark(kind, { resourceVersion: metadata['resourceVersion'] }, this.#first)
        this.#first = false
        // The annotation for the end of the initial events needs an object.
        const rows = annotations === undefined ? [] : [{ cells: [], object: partialOf(kind, object) }]
        return this.#line('BOOKMARK', { ...table, rows })
      }
      case 'partial':
        return this.#line('BOOKMARK', partialOf(kind, object))
      default:
        return this.#line('BOOKMARK', object)
    }
  }

  #written(type: EventType, whole: JsonObject): Buffer {
    const { kind, encoding, includeObject, show } = this.#request
    const object = show(kind, whole)
    switch (encoding.as) {
      case 'table': {
        const table = tableEventOf(kind, object, includeObject, this.#deps.now(), this.#first)
        this.#first = false
        return this.#line(type, table)
      }
      case 'partial':
        return this.#line(type, partialOf(kind, object))
      default:
        return this.#line(type, object)
    }
  }

  #line(type: EventType | 'BOOKMARK' | 'ERROR', object: unknown): Buffer {
    const { format } = this.#request.encoding
    const event = { type, object }
    if (format === 'json') return encode(event, { format, pretty: false })
    return Buffer.concat([encode(event, { format, pretty: false }), DOCUMENT_END])
  }

  /** An ERROR event is the last one. */
  #fail(status: unknown): void {
    this.#stream.body(this.#line('ERROR', status), false)
    this.#stop()
    this.#stream.body(EMPTY, true)
  }

  #stop(): void {
    if (this.#over) return
    this.#over = true
    this.#waiting = []
    clearTimeout(this.#endTimer)
    clearInterval(this.#bookmarkTimer)
    clearTimeout(this.#lastBookmarkTimer)
    this.#stopStore()
    this.#onEnd()
  }
}

const DOCUMENT_END = Buffer.from('---\n')

/** 410 (apimachinery errors.NewResourceExpired; storage/cacher: too old resource version). */
function tooOld(wanted: number, oldest: number): unknown {
  return failure('Expired', `too old resource version: ${wanted} (${oldest})`)
}
