// Limits Events: they are kept for an hour (kube-apiserver --event-ttl), up to a maximum number.

import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import type { ObjectStore, StoredObject } from '../api/object-store.ts'
import { metaText } from '../objects/object-metadata.ts'
import { removal } from './deletion-writes.ts'

const TTL_MS = 60 * 60 * 1000
const SWEEP_MS = 60 * 1000
/** About a kilobyte each. */
const MAX_EVENTS = 5000
/** Number of Events removed in one batch. */
const BATCH = 500

export function isEvent({ group, plural }: ResourceKind): boolean {
  return group === EVENTS.group && plural === EVENTS.plural
}

/** Removes old Events: at most once a minute, and whenever the maximum is exceeded by a batch. */
export class EventSweeper {
  readonly #store: ObjectStore
  readonly #maxEvents: number
  #nextMs = 0
  #written = 0

  constructor(store: ObjectStore, maxEvents: number = MAX_EVENTS) {
    this.#store = store
    this.#maxEvents = maxEvents
  }

  /** Call it after an Event was written. */
  onWrite(nowMs: number): void {
    this.#written++
    if (nowMs < this.#nextMs && this.#written < Math.min(BATCH, this.#maxEvents)) return
    this.sweep(nowMs)
  }

  sweep(nowMs: number): void {
    this.#nextMs = nowMs + SWEEP_MS
    this.#written = 0
    const resource = resourceName(EVENTS)
    const events = [...this.#store.list(resource, { namespace: '' })].sort((a, b) => a.revision - b.revision)
    const surplus = events.length - this.#maxEvents
    const old = events.filter((event, at) => at < surplus || nowMs - lastSeenMs(event) > TTL_MS)
    for (let at = 0; at < old.length; at += BATCH) this.#store.write(old.slice(at, at + BATCH).map(removal))
  }
}

/** When it was last written; an invalid time counts as long ago. */
function lastSeenMs({ object }: StoredObject): number {
  const times = [object['lastTimestamp'], object['eventTime'], metaText(object, 'creationTimestamp')]
  return Math.max(0, ...times.map((time) => (typeof time === 'string' ? Date.parse(time) || 0 : 0)))
}
