// Writes Events (core v1), for `kubectl describe` and `kubectl get events`: one per object and reason, with a count, so that frequent
// events don't fill the store. Events are best effort: callers never wait, excess is dropped, and a failed write is only counted.

import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { EVENTS } from '../../api/kinds/event-kind.ts'
import type { ObjectClient, ObjectName } from '../../api/object-client.ts'
import { StatusError } from '../../api/status.ts'
import type { StatusTransition } from '../../core/status-transition.ts'

export interface EventRecorderDeps {
  /** The name of this process. */
  readonly replica: string
  readonly clock: Clock
  readonly log: Logger
  readonly pace?: Partial<EventPace>
}

export interface EventPace {
  /** Between two writes of one Event. Default 1 s: nothing needs Events more often than status writes. */
  readonly objectMs: number
  /** Between any two writes. Default 50 ms. */
  readonly spacingMs: number
}

/** `objectMs` for Events caused by user requests, which may be thousands a second. */
export const EVENTS_OF_REQUESTS_MS = 10_000

/** The object that an Event is about. */
export interface Involved {
  readonly apiVersion: string
  readonly kind: string
  /** '' = cluster-scoped. */
  readonly namespace: string
  readonly name: string
  /** '' = unknown. */
  readonly uid: string
  readonly resourceVersion?: string
}

/** An Event, and its pending writes. */
interface EventSeries {
  readonly client: ObjectClient
  readonly involved: Involved
  readonly firstMs: number
  news: StatusTransition
  lastMs: number
  /** Occurrences still to be written. */
  due: number
  /** Occurrences whose write has failed: added to the next one. */
  failed: number
  /** It exists, unless its server has deleted it. */
  written: boolean
  /** Monotonic: don't write before. */
  dueMs: number
  writing: boolean
}

const COMPONENT = 'portcullis'
/** Where Events about cluster-scoped objects are kept (client-go/tools/record). */
const DEFAULT_NAMESPACE = 'default'
/** Characters of a message, the limit of events.k8s.io. */
const MAX_MESSAGE = 1024
const MAX_NAME = 253
/** Above this, the least recent are dropped. */
const MAX_SERIES = 2_000
const PACE: EventPace = { objectMs: 1_000, spacingMs: 50 }

export class EventRecorder {
  /** Events that could not be written. */
  failures = 0
  readonly #deps: EventRecorderDeps
  readonly #pace: EventPace
  /** Least recently used first. */
  readonly #series = new Map<string, EventSeries>()
  readonly #writes = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires, monotonic. */
  #wakeMs = 0
  #nextMs = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(deps: EventRecorderDeps) {
    this.#deps = deps
    this.#pace = { ...PACE, ...deps.pace }
  }

  /** Returns at once. @param client of the API server that holds the object */
  record(client: ObjectClient, involved: Involved, ...all: readonly StatusTransition[]): void {
    if (this.#stopped) return
    for (const news of all) this.#count(client, involved, news)
  }

  /** Drops pending writes. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#series.clear()
    await Promise.all(this.#writes)
  }

  #count(client: ObjectClient, involved: Involved, news: StatusTransition): void {
    const { kind, namespace, name, uid } = involved
    const key = `${kind}/${namespace}/${name}/${uid}/${news.reason}`
    const lastMs = this.#deps.clock.now()
    const fresh = { client, involved, firstMs: lastMs, due: 0, failed: 0, written: false, dueMs: 0, writing: false }
    const series: EventSeries = this.#series.get(key) ?? { ...fresh, news, lastMs }
    series.due++
    series.news = news
    series.lastMs = lastMs
    this.#series.delete(key)
    this.#series.set(key, series)
    if (this.#series.size > MAX_SERIES) this.#series.delete(this.#series.keys().next().value ?? key)
    // Arm the timer once per burst.
    if (series.due === 1) this.#arm()
  }

  #arm(): void {
    const next = this.#stopped ? undefined : this.#nextDue()
    if (next === undefined) return
    const wakeMs = Math.max(next.dueMs, this.#nextMs)
    if (this.#timer !== undefined && this.#wakeMs <= wakeMs) return
    clearTimeout(this.#timer)
    this.#wakeMs = wakeMs
    const waitMs = Math.max(0, Math.ceil(wakeMs - this.#deps.clock.monotonic()))
    this.#timer = setTimeout(() => this.#writeNext(), waitMs)
    this.#timer.unref()
  }

  #nextDue(): EventSeries | undefined {
    let first: EventSeries | undefined
    for (const series of this.#series.values()) {
      if (series.writing || series.due === 0) continue
      if (first === undefined || series.dueMs < first.dueMs) first = series
    }
    return first
  }

  #writeNext(): void {
    this.#timer = undefined
    const nowMs = this.#deps.clock.monotonic()
    const series = this.#nextDue()
    if (series === undefined) return
    if (series.dueMs > nowMs || this.#nextMs > nowMs) {
      this.#arm()
      return
    }
    this.#nextMs = nowMs + this.#pace.spacingMs
    series.dueMs = nowMs + this.#pace.objectMs
    series.writing = true
    const write = this.#write(series).finally(() => {
      series.writing = false
      this.#writes.delete(write)
      this.#arm()
    })
    this.#writes.add(write)
    this.#arm()
  }

  async #write(series: EventSeries): Promise<void> {
    const count = series.due + series.failed
    series.due = 0
    series.failed = 0
    const event = eventOf(series, count, this.#deps.replica)
    try {
      if (!series.written || !(await add(series.client, event, count))) await create(series.client, event, count)
      series.written = true
    } catch (error) {
      this.failures++
      series.failed += count
      const { reason } = series.news
      this.#deps.log.debug('event cannot be written', { reason: errorMessage(error), event: reason })
    }
  }
}

export function involvedIn(object: JsonObject): Involved {
  const { uid, resourceVersion } = recordOf(object['metadata'])
  return {
    apiVersion: textOf(object['apiVersion']),
    kind: textOf(object['kind']),
    namespace: namespaceOf(object),
    name: nameOf(object),
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
  }
}

async function create(client: ObjectClient, event: JsonObject, count: number): Promise<void> {
  try {
    await client.create(EVENTS, event)
  } catch (error) {
    // Written by another replica, or by this one before a restart.
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error
    await add(client, event, count)
  }
}

/** Adds to the Event's stored count: other replicas count too. @returns false if the Event doesn't exist */
async function add(client: ObjectClient, event: JsonObject, count: number): Promise<boolean> {
  const at = nameIn(event)
  const { type, message, source, reportingInstance, lastTimestamp } = event
  try {
    const known = (await client.get(EVENTS, at))['count']
    const sum = (typeof known === 'number' ? known : 1) + count
    const body = { type, message, source, reportingInstance, lastTimestamp, count: sum }
    await client.patch(EVENTS, at, 'application/merge-patch+json', body, { fieldManager: COMPONENT })
    return true
  } catch (error) {
    if (error instanceof StatusError && error.reason === 'NotFound') return false
    throw error
  }
}

function eventOf({ involved, news, firstMs, lastMs }: EventSeries, count: number, replica: string): JsonObject {
  const { type, reason, message } = news
  const known = Object.entries(involved).filter(([, value]) => value !== '')
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(involved, reason), namespace: involved.namespace || DEFAULT_NAMESPACE },
    involvedObject: Object.fromEntries(known),
    type,
    reason,
    message: message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message,
    source: { component: COMPONENT, host: replica },
    reportingComponent: COMPONENT,
    reportingInstance: replica,
    firstTimestamp: metaTime(firstMs),
    lastTimestamp: metaTime(lastMs),
    count,
  }
}

/** The same for every replica and after a restart. A name must not have '-' or '.' before a '.'. */
function eventName({ name, uid }: Involved, reason: string): string {
  const suffix = `.${reason.toLowerCase()}.${uid.slice(0, 8)}`.replace(/\.$/, '')
  return `${name.slice(0, MAX_NAME - suffix.length).replace(/[.-]+$/, '')}${suffix}`
}

function nameIn(event: JsonObject): ObjectName {
  return { namespace: namespaceOf(event), name: nameOf(event) }
}
