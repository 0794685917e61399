// An API server without a wire: objects in memory behind the ObjectClient seam, with resource versions, conflicts and the status
// subresource. For tests of controllers that would cost a real server each; what servers really do is tested elsewhere.

import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { sameJson } from '../../../src/kit/core/text/same-json.ts'
import type {
  FollowChoice,
  FollowEvents,
  Following,
  ObjectClient,
  ObjectList,
  ObjectName,
  PatchOptions,
} from '../../../src/kube/api/object-client.ts'
import type { ResourceKind } from '../../../src/kube/api/resource-kind.ts'
import { resourceName } from '../../../src/kube/api/resource-kind.ts'
import { type StatusError, statusError } from '../../../src/kube/api/status.ts'

interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
}

interface Follower {
  readonly kind: ResourceKind
  readonly namespace: string
  readonly events: FollowEvents
  readonly choice: FollowChoice
}

export class MemoryObjects implements ObjectClient {
  /** No answers, as long as it is true. */
  away = false
  namespaces: readonly string[] = ['default', 'portcullis-system']
  /** Every write, in order: `update/status upstreamclusters.proxy.kubegateway.io prod`. */
  readonly writes: string[] = []
  /** Reads of the current version. */
  readonly reads: string[] = []
  /** What comes between reading and writing, once. */
  beforeUpdate: (() => void) | undefined
  #revision = 1
  readonly #objects = new Map<string, JsonObject>()
  readonly #followers: Follower[] = []
  /** What followers will hear once they hear again; undefined = they hear at once. */
  #held: (() => void)[] | undefined

  find(kind: ResourceKind, name: string, namespace = ''): JsonObject | undefined {
    return this.#objects.get(keyOf(kind, namespace, name))
  }

  all(kind: ResourceKind): JsonObject[] {
    return [...this.#objects].filter(([key]) => key.startsWith(`${resourceName(kind)} `)).map(([, object]) => object)
  }

  /** As another client would: the spec, with another generation when it differs. */
  put(kind: ResourceKind, object: JsonObject): JsonObject {
    const { name, namespace = '' } = metadataOf(object)
    const before = this.find(kind, name, namespace)
    const same = before !== undefined && sameJson(before['spec'], object['spec'])
    const generation = (before === undefined ? 0 : (metadataOf(before).generation ?? 0)) + (same ? 0 : 1)
    const uid = before === undefined ? (metadataOf(object).uid ?? `uid-${this.#revision}`) : metadataOf(before).uid
    const metadata = { ...(object['metadata'] as object), generation, uid }
    const status = object['status'] ?? before?.['status']
    const whole = { ...object, metadata, ...(status !== undefined && { status }) }
    return this.#store(kind, whole, before === undefined ? 'ADDED' : 'MODIFIED')
  }

  remove(kind: ResourceKind, name: string, namespace = ''): void {
    const key = keyOf(kind, namespace, name)
    const object = this.#objects.get(key)
    if (object === undefined) throw statusError('NotFound', `${name} not found`)
    this.#objects.delete(key)
    const metadata = { ...(object['metadata'] as object), resourceVersion: String(++this.#revision) }
    this.#tell(kind, 'DELETED', { ...object, metadata }, object)
  }

  async get(kind: ResourceKind, { namespace, name }: ObjectName): Promise<JsonObject> {
    await this.#answer()
    const object = this.find(kind, name, namespace)
    if (object === undefined) throw notFound(kind, name)
    return object
  }

  async list(kind: ResourceKind, namespace: string, labelSelector = ''): Promise<ObjectList> {
    await this.#answer()
    const items = this.#selected(kind, namespace, labelSelector)
    return { items, resourceVersion: String(this.#revision) }
  }

  async create(kind: ResourceKind, object: JsonObject): Promise<JsonObject> {
    await this.#answer()
    const { name, namespace = '' } = metadataOf(object)
    if (kind.namespaced && !this.namespaces.includes(namespace)) throw statusError('NotFound', `no ${namespace}`)
    if (this.find(kind, name, namespace) !== undefined) throw statusError('AlreadyExists', `${name} exists`)
    this.writes.push(`create ${resourceName(kind)} ${name}`)
    return this.put(kind, object)
  }

  async update(kind: ResourceKind, object: JsonObject, subresource?: 'status'): Promise<JsonObject> {
    await this.#answer()
    this.beforeUpdate?.()
    this.beforeUpdate = undefined
    const { name, namespace = '', resourceVersion } = metadataOf(object)
    const before = this.find(kind, name, namespace)
    if (before === undefined) throw notFound(kind, name)
    if (metadataOf(before).resourceVersion !== resourceVersion) throw statusError('Conflict', `${name} was modified`)
    this.writes.push(`update${subresource === undefined ? '' : '/status'} ${resourceName(kind)} ${name}`)
    if (subresource === undefined) return this.put(kind, object)
    return this.#store(kind, { ...before, status: object['status'] }, 'MODIFIED')
  }

  /** As a real one of a custom resource: the version is a precondition; the uid is one too, but of a status it is ignored. */
  async patch(
    kind: ResourceKind,
    at: ObjectName,
    _type: string,
    body: unknown,
    options?: PatchOptions,
  ): Promise<JsonObject> {
    const before = await this.get(kind, at)
    const after = merged(before, body) as JsonObject
    const [known, given] = [metadataOf(before), metadataOf(after)]
    if (given.resourceVersion !== known.resourceVersion) throw statusError('Conflict', `${at.name} was modified`)
    this.writes.push(`patch ${resourceName(kind)} ${at.name}`)
    if (options?.subresource === 'status') return this.#store(kind, { ...before, status: after['status'] }, 'MODIFIED')
    if (given.uid !== known.uid) throw statusError('Invalid', 'metadata.uid: Invalid value: field is immutable')
    return this.put(kind, after)
  }

  async delete(kind: ResourceKind, { namespace, name }: ObjectName): Promise<void> {
    await this.#answer()
    this.remove(kind, name, namespace)
  }

  async currentVersion(kind: ResourceKind): Promise<string> {
    await this.#answer()
    this.reads.push(`version ${resourceName(kind)}`)
    return String(this.#revision)
  }

  follow(kind: ResourceKind, namespace: string, events: FollowEvents, choice: FollowChoice = {}): Following {
    const follower = { kind, namespace, events, choice }
    this.#followers.push(follower)
    queueMicrotask(() => {
      if (!this.away) this.#tellAll(follower)
    })
    return {
      stop: async () => {
        this.#followers.splice(this.#followers.indexOf(follower), 1)
        await Promise.resolve()
      },
    }
  }

  /** How many follow the kind. */
  followers(kind: ResourceKind): number {
    return this.#followers.filter((follower) => isSame(follower.kind, kind)).length
  }

  /** The server is there again: followers hear what they missed. */
  comeBack(): void {
    this.away = false
    for (const follower of this.#followers) this.#tellAll(follower)
  }

  /** Followers get no events, and no error. */
  stall(): void {
    this.#held ??= []
  }

  /** Delivers all missing events, in order. */
  resume(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const tell of held) tell()
  }

  /** Advances the version without an event for this kind. */
  bookmark(kind: ResourceKind): void {
    const version = String(++this.#revision)
    for (const follower of this.#followers) {
      if (isSame(follower.kind, kind)) this.#deliver(follower, () => follower.events.onVersion?.(version))
    }
  }

  #selected(kind: ResourceKind, namespace: string, labelSelector = ''): JsonObject[] {
    return this.all(kind).filter((object) => {
      const metadata = metadataOf(object)
      return (namespace === '' || metadata.namespace === namespace) && matches(object, labelSelector)
    })
  }

  #tellAll({ kind, namespace, events, choice }: Follower): void {
    const items = this.#selected(kind, namespace, choice.labelSelector)
    const named = items.filter((item) => isNamed(item, choice))
    events.onReplace(named.map((item) => choice.transform?.(item) ?? item))
    events.onVersion?.(String(this.#revision))
    events.onState(true, '')
  }

  #deliver(follower: Follower, tell: () => void): void {
    const call = (): void => {
      if (this.#followers.includes(follower)) tell()
    }
    if (this.#held === undefined) call()
    else this.#held.push(call)
  }

  async #answer(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    if (this.away) throw new Error('connect ECONNREFUSED')
  }

  #store(kind: ResourceKind, object: JsonObject, type: 'ADDED' | 'MODIFIED'): JsonObject {
    const { name, namespace = '' } = metadataOf(object)
    const metadata = { ...(object['metadata'] as object), resourceVersion: String(++this.#revision) }
    // Cloned, as by a wire.
    const stored = structuredClone({ ...object, metadata })
    const before = this.find(kind, name, namespace)
    this.#objects.set(keyOf(kind, namespace, name), stored)
    this.#tell(kind, type, stored, before)
    return stored
  }

  #tell(
    kind: ResourceKind,
    type: 'ADDED' | 'MODIFIED' | 'DELETED',
    object: JsonObject,
    before: JsonObject | undefined,
  ): void {
    if (this.away) return
    const { namespace = '', resourceVersion = '' } = metadataOf(object)
    for (const follower of this.#followers.slice()) {
      if (!isSame(follower.kind, kind) || (follower.namespace !== '' && follower.namespace !== namespace)) continue
      const { events, choice } = follower
      if (!isNamed(object, choice)) continue
      const seen = seenAs(type, object, before, choice.labelSelector ?? '')
      this.#deliver(follower, () => {
        if (seen !== undefined) events.onChange(seen, choice.transform?.(object) ?? object)
        events.onVersion?.(resourceVersion)
      })
    }
  }
}

function isNamed(object: JsonObject, { name = '' }: FollowChoice): boolean {
  return name === '' || metadataOf(object).name === name
}

/** As a watch with a selector: what leaves it is deleted. */
function seenAs(
  type: 'ADDED' | 'MODIFIED' | 'DELETED',
  object: JsonObject,
  before: JsonObject | undefined,
  labelSelector: string,
): typeof type | undefined {
  const knew = before !== undefined && matches(before, labelSelector)
  if (type === 'DELETED' || !matches(object, labelSelector)) return knew ? 'DELETED' : undefined
  return knew ? 'MODIFIED' : 'ADDED'
}

/** Knows only selectors of the form `key=value`, several with commas. */
function matches(object: JsonObject, labelSelector: string): boolean {
  if (labelSelector === '') return true
  return labelSelector.split(',').every((requirement) => {
    const [label = '', value = ''] = requirement.split('=')
    return metadataOf(object).labels?.[label] === value
  })
}

function keyOf(kind: ResourceKind, namespace: string, name: string): string {
  return `${resourceName(kind)} ${namespace}/${name}`
}

function metadataOf(object: JsonObject): Metadata {
  return object['metadata'] as Metadata
}

/** RFC 7396. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = { ...(typeof target === 'object' && !Array.isArray(target) ? target : {}) }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  }
  return result
}

function notFound(kind: ResourceKind, name: string): StatusError {
  return statusError('NotFound', `${resourceName(kind)} "${name}" not found`, { name, kind: kind.plural })
}

/** Rows of foreign kinds are made again by each test that needs one. */
function isSame(a: ResourceKind, b: ResourceKind): boolean {
  return a === b || (resourceName(a) === resourceName(b) && a.version === b.version)
}
