// Events (core v1) about UpstreamClusters, for `kubectl describe` and `kubectl get events`. There is one Event for each cluster and
// reason, with a count, so that a flapping endpoint does not fill the store. Events are best effort: nothing waits for them, and an
// excess is dropped.

import { EVENTS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import type { StatusTransition } from '../../core/status/status-transition.ts'
import { metaTime } from '../../core/text/meta-time.ts'

/** Where events of cluster-scoped objects are kept (client-go/tools/record). */
const NAMESPACE = 'default'
const COMPONENT = 'portcullis'
/** Characters of a message, the limit of events.k8s.io. */
const MAX_MESSAGE = 1024
const MAX_NAME = 253
const MAX_WAITING = 1_000

interface Waiting {
  readonly object: JsonObject
  readonly transition: StatusTransition
  readonly at: string
}

export class StatusEvents {
  readonly #client: ObjectClient
  readonly #replica: string
  readonly #clock: Clock
  readonly #log: Logger
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined
  #stopped = false

  constructor(client: ObjectClient, replica: string, clock: Clock, log: Logger) {
    this.#client = client
    this.#replica = replica
    this.#clock = clock
    this.#log = log
  }

  tell(object: JsonObject, transitions: readonly StatusTransition[]): void {
    if (this.#stopped || transitions.length === 0) return
    const at = metaTime(this.#clock.now())
    for (const transition of transitions) this.#waiting.push({ object, transition, at })
    if (this.#waiting.length > MAX_WAITING) this.#waiting = this.#waiting.slice(-MAX_WAITING)
    this.#writing ??= this.#writeAll()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#waiting = []
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#write(next)
      } catch (error) {
        const reason = errorMessage(error)
        this.#log.debug('event cannot be written', { reason, event: next.transition.reason })
      }
    }
    this.#writing = undefined
  }

  async #write({ object, transition, at }: Waiting): Promise<void> {
    const event = this.#eventOf(object, transition, at)
    try {
      await this.#client.create(EVENTS, event)
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error
      await this.#count(event)
    }
  }

  /** It has happened before. */
  async #count(event: JsonObject): Promise<void> {
    const name = eventName(event)
    const known = await this.#client.get(EVENTS, { namespace: NAMESPACE, name })
    const count = typeof known['count'] === 'number' ? known['count'] : 1
    const { metadata: _name, firstTimestamp: _first, ...latest } = event
    await this.#client.update(EVENTS, { ...known, ...latest, count: count + 1 })
  }

  #eventOf(object: JsonObject, { type, reason, message }: StatusTransition, at: string): JsonObject {
    const metadata = object['metadata'] as { name: string; uid?: string; resourceVersion?: string }
    const { name, uid = '', resourceVersion = '' } = metadata
    const suffix = `.${reason.toLowerCase()}.${uid.slice(0, 8)}`.replace(/\.$/, '')
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {
        name: `${name.slice(0, MAX_NAME - suffix.length).replace(/[.-]+$/, '')}${suffix}`,
        namespace: NAMESPACE,
      },
      involvedObject: { apiVersion: object['apiVersion'], kind: object['kind'], name, uid, resourceVersion },
      type,
      reason,
      message: message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message,
      source: { component: COMPONENT, host: this.#replica },
      reportingComponent: COMPONENT,
      reportingInstance: this.#replica,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    }
  }
}

function eventName(event: JsonObject): string {
  return (event['metadata'] as { name: string }).name
}
