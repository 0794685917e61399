// ObjectClient without HTTP: for controllers and commands in the API server's own process. It acts as the
// gateway itself, which may do everything.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type {
  FollowChoice,
  FollowEvents,
  Following,
  ObjectClient,
  ObjectList,
  ObjectName,
  PatchOptions,
  PatchType,
} from '../../kube/api/object-client.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { type LabelRequirements, labelsMatch } from '../../kube/core/selectors/label-requirement.ts'
import { parseLabelSelector } from '../../kube/core/selectors/parse-selector.ts'
import type { StoreEvent } from '../api/object-store.ts'
import { LIST_EVERYTHING, labelsOf } from '../list/options.ts'
import { metaText } from '../objects/object-metadata.ts'
import type { Incoming } from '../objects/write-object-decode.ts'
import type { WriteCall } from './context.ts'
import { DELETE_NOW } from './deletion-options.ts'
import { isEvent } from './events.ts'
import type { Registry } from './registry.ts'

/** Also in managedFields. */
const MANAGER = 'portcullis'
/** Delay before a failed read is retried. */
const RETRY_MS = 1000

export function createInProcessClient(registry: Registry): ObjectClient {
  return new InProcessClient(registry)
}

class InProcessClient implements ObjectClient {
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  async get(kind: ResourceKind, at: ObjectName): Promise<JsonObject> {
    return this.#registry.get(kind, at)
  }

  async list(kind: ResourceKind, namespace: string, labelSelector = ''): Promise<ObjectList> {
    const labels = readSelector(labelSelector)
    const { items, metadata } = this.#registry.list(kind, namespace, { ...LIST_EVERYTHING, labels })
    return { items, resourceVersion: String(metadata['resourceVersion']) }
  }

  async create(kind: ResourceKind, object: JsonObject): Promise<JsonObject> {
    const namespace = kind.namespaced ? metaText(object, 'namespace') : ''
    const body = incoming(object)
    return this.#written(isEvent(kind), () => {
      return this.#registry.create(kind, namespace, body, callOf(MANAGER, false)).object
    })
  }

  async update(kind: ResourceKind, object: JsonObject, subresource?: 'status'): Promise<JsonObject> {
    const at = { namespace: metaText(object, 'namespace'), name: metaText(object, 'name') }
    const body = incoming(object)
    const write = (): JsonObject =>
      this.#registry.update(kind, at, subresource ?? '', body, callOf(MANAGER, false)).object
    return this.#written(subresource === 'status', write)
  }

  async patch(
    kind: ResourceKind,
    at: ObjectName,
    type: PatchType,
    body: unknown,
    options: PatchOptions,
  ): Promise<JsonObject> {
    const { fieldManager, force = false, subresource = '' } = options
    // No kind served here has it.
    if (subresource === 'scale') throw statusError('NotFound', `${resourceName(kind)} has no subresource scale`)
    const given = incoming(body)
    return this.#written(isEvent(kind) || subresource === 'status', () => {
      return this.#registry.patch(kind, at, subresource, type, given, callOf(fieldManager, force)).object
    })
  }

  async delete(kind: ResourceKind, at: ObjectName): Promise<void> {
    this.#registry.delete(kind, at, DELETE_NOW)
  }

  async currentVersion(): Promise<string> {
    return String(this.#registry.store.revision)
  }

  /** Statuses and Events need not go to disk one by one: their authors await them. */
  #written(isGrouped: boolean, write: () => JsonObject): Promise<JsonObject> | JsonObject {
    return isGrouped ? this.#registry.together(write) : write()
  }

  follow(kind: ResourceKind, namespace: string, events: FollowEvents, choice: FollowChoice = {}): Following {
    const { labelSelector = '', name = '', transform = identity } = choice
    const labels = readSelector(labelSelector)
    let stop: (() => void) | undefined
    let stopped = false
    let retry: NodeJS.Timeout | undefined
    const begin = (): void => {
      const { store } = this.#registry
      const { items, metadata } = this.#registry.list(kind, namespace, { ...LIST_EVERYTHING, labels })
      const version = String(metadata['resourceVersion'])
      events.onReplace(items.filter((item) => isNamed(name, item)).map((item) => transform(item)))
      if (!stopped) events.onVersion?.(version)
      if (!stopped) events.onState(true, '')
      if (stopped) return
      stop = store.watch(resourceName(kind), namespace, Number(version), (event) => {
        if (stopped) return
        const seen = isNamed(name, event.object) ? seenAs(labels, event) : undefined
        if (seen !== undefined) events.onChange(seen, transform(event.object))
        if (!stopped) events.onVersion?.(metaText(event.object, 'resourceVersion'))
      })
    }
    // A disk failure must not end the whole process.
    const attempt = (): void => {
      if (stopped) return
      try {
        begin()
      } catch (error) {
        retry = setTimeout(attempt, RETRY_MS)
        retry.unref()
        if (!stopped) events.onState(false, errorMessage(error))
      }
    }
    // Not before this has returned to the caller.
    queueMicrotask(attempt)
    return {
      async stop() {
        stopped = true
        clearTimeout(retry)
        stop?.()
      },
    }
  }
}

/** The event as seen through a label selector; undefined = not visible. */
function seenAs(labels: LabelRequirements, { type, object, previous }: StoreEvent): StoreEvent['type'] | undefined {
  if (labels.length === 0) return type
  const before = previous !== undefined && labelsMatch(labels, labelsOf(previous))
  if (type === 'DELETED' || !labelsMatch(labels, labelsOf(object))) return before ? 'DELETED' : undefined
  return before ? 'MODIFIED' : 'ADDED'
}

function isNamed(name: string, object: JsonObject): boolean {
  return name === '' || metaText(object, 'name') === name
}

function identity(object: JsonObject): JsonObject {
  return object
}

/** A copy as if sent over HTTP: the caller may mutate its values later, and undefined members are dropped. */
function incoming(object: unknown): Incoming {
  const value: unknown = JSON.parse(JSON.stringify(object))
  return { value, duplicates: [], strictErrors: [], text: '' }
}

function callOf(manager: string, force: boolean): WriteCall {
  return { options: { dryRun: false, fieldValidation: 'Strict', manager, force }, warnings: [], isOwn: true }
}

function readSelector(text: string): ReturnType<typeof parseLabelSelector> {
  try {
    return parseLabelSelector(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw statusError('BadRequest', error.message)
    throw error
  }
}
