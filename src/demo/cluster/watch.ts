// DEMO ONLY. The watch: changes of one resource as they come, seen through the selectors of the client, with bookmarks
// (apiserver/pkg/storage/cacher, pkg/endpoints/handlers/watch.go).

import { isTrue, queryValue } from '../../core/request/list-options.ts'
import { ApiError, statusOf, tooOld } from './api-error.ts'
import { type Answer, type Call, type ClusterState, queryOf, type Sink, wantsTable } from './call.ts'
import type { DemoObject, Json } from './json.ts'
import { groupVersionOf, type Resource } from './resources.ts'
import { parseSelectors, type Selector } from './selectors.ts'
import type { Change } from './store.ts'
import { tableOf } from './tables.ts'

const BOOKMARK_MS = 60_000
/** As --min-request-timeout: a watch without timeoutSeconds ends after one to two times this. */
const DEFAULT_TIMEOUT_MS = 1_800_000

export function watchObjects(state: ClusterState, of: Resource, call: Call): Answer {
  const selector = parseSelectors(call.info.labelSelector, call.info.fieldSelector)
  const start = startOf(state, of, call)
  return {
    code: 200,
    contentType: 'application/json',
    body: '',
    stream: (sink) => new Watch(state, of, call, selector, sink).run(start),
  }
}

interface Start {
  /** Everything that exists comes first, as ADDED. */
  readonly initial: boolean
  /** A bookmark says that the initial objects are complete (WatchList). */
  readonly marked: boolean
  /** Otherwise: changes after this version. */
  readonly version: number
}

function startOf(state: ClusterState, of: Resource, call: Call): Start {
  const text = queryOf(call, 'resourceVersion')
  const version = Number(text === '' ? '0' : text)
  if (!Number.isSafeInteger(version)) throw new ApiError(400, 'BadRequest', `invalid resource version: ${text}`)
  const marked = isTrue(queryValue(call.query, 'sendInitialEvents'))
  if (marked && queryOf(call, 'resourceVersionMatch') !== 'NotOlderThan') {
    const message = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'
    throw new ApiError(422, 'Invalid', `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: ${message}`, {
      group: of.group,
      kind: 'ListOptions',
    })
  }
  if (version > state.store.version) {
    throw new ApiError(504, 'Timeout', `Too large resource version: ${version}, current: ${state.store.version}`)
  }
  return { initial: marked || version === 0, marked, version }
}

class Watch {
  readonly #state: ClusterState
  readonly #of: Resource
  readonly #call: Call
  readonly #selector: Selector
  readonly #sink: Sink
  readonly #table: boolean
  readonly #bookmarks: boolean
  #columnsSent = false
  #stops: (() => void)[] = []

  constructor(state: ClusterState, of: Resource, call: Call, selector: Selector, sink: Sink) {
    this.#state = state
    this.#of = of
    this.#call = call
    this.#selector = selector
    this.#sink = sink
    this.#table = wantsTable(call.accept)
    this.#bookmarks = isTrue(queryValue(call.query, 'allowWatchBookmarks'))
  }

  run(start: Start): () => void {
    const { store } = this.#state
    if (start.initial) this.#sendAll(start.marked)
    else {
      const missed = store.since(this.#of, start.version)
      if (missed === undefined) {
        this.#frame('ERROR', statusOf(tooOld(start.version, store.version)))
        this.#sink.end()
        return () => undefined
      }
      for (const change of missed) this.#change(change)
    }
    this.#stops.push(store.watch(this.#of, (change) => this.#change(change)))
    const bookmarks = setInterval(() => this.#bookmark(false), BOOKMARK_MS)
    const end = setTimeout(() => this.#finish(), this.#timeoutMs())
    this.#stops.push(
      () => clearInterval(bookmarks),
      () => clearTimeout(end),
    )
    return () => this.#stop()
  }

  #timeoutMs(): number {
    const seconds = Number(queryOf(this.#call, 'timeoutSeconds'))
    return seconds > 0 ? seconds * 1000 : DEFAULT_TIMEOUT_MS * (1 + Math.random())
  }

  #sendAll(marked: boolean): void {
    const namespace = this.#of.namespaced ? this.#call.info.namespace : ''
    for (const object of this.#state.store.list(this.#of, namespace)) {
      if (this.#selector(object)) this.#object('ADDED', object)
    }
    if (marked) this.#bookmark(true)
  }

  /** The type is relative to the selector: an object that ceases to match is DELETED. */
  #change({ type, object, previous }: Change): void {
    const { namespace } = this.#call.info
    if (this.#of.namespaced && namespace !== '' && object.metadata.namespace !== namespace) return
    const was = previous !== undefined && this.#selector(previous)
    const is = type !== 'DELETED' && this.#selector(object)
    if (is) this.#object(was ? 'MODIFIED' : 'ADDED', object)
    else if (was) this.#object('DELETED', { ...previous, metadata: { ...previous.metadata, ...versionOf(object) } })
  }

  #object(type: Change['type'], object: DemoObject): void {
    if (!this.#table) {
      this.#frame(type, object)
      return
    }
    const version = object.metadata.resourceVersion ?? ''
    this.#frame(type, tableOf(this.#of, [object], version, Date.now(), !this.#columnsSent))
    this.#columnsSent = true
  }

  #bookmark(initialEventsEnd: boolean): void {
    if (!this.#bookmarks) return
    const resourceVersion = String(this.#state.store.version)
    const annotations = initialEventsEnd ? { 'k8s.io/initial-events-end': 'true' } : undefined
    const metadata = { resourceVersion, creationTimestamp: null, ...(annotations === undefined ? {} : { annotations }) }
    if (this.#table) {
      const row = { cells: null, object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata } }
      const empty = tableOf(this.#of, [], resourceVersion, Date.now(), !this.#columnsSent)
      this.#frame('BOOKMARK', { ...empty, rows: [row] })
    } else this.#frame('BOOKMARK', { kind: this.#of.kind, apiVersion: groupVersionOf(this.#of), metadata })
  }

  #frame(type: string, object: Json): void {
    this.#sink.write(`${JSON.stringify({ type, object })}\n`)
  }

  #finish(): void {
    this.#bookmark(false)
    this.#stop()
    this.#sink.end()
  }

  #stop(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
  }
}

function versionOf(object: DemoObject): { resourceVersion?: string } {
  const { resourceVersion } = object.metadata
  return resourceVersion === undefined ? {} : { resourceVersion }
}
