// An API server without a wire: objects in memory behind the ObjectClient seam, with resource versions, conflicts and the status
// subresource. For tests of controllers that would cost a real server each; what servers really do is tested elsewhere.

import type { FollowEvents, Following, ObjectClient, ObjectList, ObjectName } from '../../src/api/object-client.ts'
import type { JsonObject, ResourceKind } from '../../src/api/resource-kind.ts'
import { resourceName } from '../../src/api/resource-kind.ts'
import { statusError } from '../../src/api/status.ts'
import { sameJson } from '../../src/core/same-json.ts'

interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
}

export class MemoryObjects implements ObjectClient {
  /** No answers, as long as it is true. */
  away = false
  namespaces: readonly string[] = ['default', 'portcullis-system']
  /** Every write, in order: `update/status upstreamclusters.proxy.kubegateway.io prod`. */
  readonly writes: string[] = []
  /** What comes between reading and writing, once. */
  beforeUpdate: (() => void) | undefined
  #revision = 1
  readonly #objects = new Map<string, JsonObject>()
  readonly #followers: { kind: ResourceKind; events: FollowEvents }[] = []

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
    const uid = before === undefined ? `uid-${this.#revision}` : metadataOf(before).uid
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
    this.#tell(kind, 'DELETED', object)
  }

  async get(kind: ResourceKind, { namespace, name }: ObjectName): Promise<JsonObject> {
    await this.#answer()
    const object = this.find(kind, name, namespace)
    if (object === undefined) throw statusError('NotFound', `${resourceName(kind)} "${name}" not found`)
    return object
  }

  async list(kind: ResourceKind, namespace: string, labelSelector = ''): Promise<ObjectList> {
    await this.#answer()
    const [label = '', value = ''] = labelSelector.split('=')
    const items = this.all(kind).filter((object) => {
      const metadata = metadataOf(object)
      return (
        (namespace === '' || metadata.namespace === namespace) && (label === '' || metadata.labels?.[label] === value)
      )
    })
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
    if (before === undefined) throw statusError('NotFound', `${name} not found`)
    if (metadataOf(before).resourceVersion !== resourceVersion) throw statusError('Conflict', `${name} was modified`)
    this.writes.push(`update${subresource === undefined ? '' : '/status'} ${resourceName(kind)} ${name}`)
    if (subresource === undefined) return this.put(kind, object)
    return this.#store(kind, { ...before, status: object['status'] }, 'MODIFIED')
  }

  async patch(kind: ResourceKind, at: ObjectName, _type: string, body: unknown): Promise<JsonObject> {
    const before = await this.get(kind, at)
    this.writes.push(`patch ${resourceName(kind)} ${at.name}`)
    return this.put(kind, merged(before, body) as JsonObject)
  }

  async delete(kind: ResourceKind, { namespace, name }: ObjectName): Promise<void> {
    await this.#answer()
    this.remove(kind, name, namespace)
  }

  follow(kind: ResourceKind, _namespace: string, events: FollowEvents): Following {
    const follower = { kind, events }
    this.#followers.push(follower)
    queueMicrotask(() => {
      events.onReplace(this.all(kind))
      events.onState(true, '')
    })
    return {
      stop: async () => {
        this.#followers.splice(this.#followers.indexOf(follower), 1)
        await Promise.resolve()
      },
    }
  }

  /** The server is there again: followers hear what they missed. */
  comeBack(): void {
    this.away = false
    for (const { kind, events } of this.#followers) {
      events.onReplace(this.all(kind))
      events.onState(true, '')
    }
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
    this.#objects.set(keyOf(kind, namespace, name), stored)
    this.#tell(kind, type, stored)
    return stored
  }

  #tell(kind: ResourceKind, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    if (this.away) return
    for (const follower of this.#followers) if (follower.kind === kind) follower.events.onChange(type, object)
  }
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
