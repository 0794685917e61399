// Caches the objects of one kind for a controller, like client-go's informers: an object missing from a new list is gone, one deleted and
// recreated
// under its name is a different one, and staleness is tracked. Informers of one client share a watch if the
// client supports it (kube/io/shared-follow.ts).

import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { FollowChoice, FollowEvents, Following, ObjectClient } from '../../api/object-client.ts'
import type { ResourceKind } from '../../api/resource-kind.ts'

export interface InformerOptions<T> {
  readonly client: Pick<ObjectClient, 'follow'>
  readonly kind: ResourceKind
  /** Default: all. */
  readonly namespace?: string
  readonly choice?: FollowChoice
  /**
   * What to keep of an object; undefined = nothing.
   * @param before what was kept of the same object so far; undefined = it is new
   */
  keep(object: JsonObject, before: T | undefined, key: string): T | undefined
  /** A kept object is gone. Called before `keep` if the object was recreated. */
  onGone?(kept: T, key: string): void
  /** A list or an event was processed, unless it left the same string, number or boolean as before. */
  onChange?(): void
  /** Called before `current` and `message` of the informer change. */
  onState?(current: boolean, message: string): void
  onVersion?(resourceVersion: string): void
}

export class Informer<T> implements FollowEvents {
  /** Everything was listed at least once. */
  listed = false
  /** The cache matches the API server. */
  current = false
  /** Why it is not current; '' = it is, or was not listed yet. */
  message = ''
  readonly kind: ResourceKind
  readonly #options: InformerOptions<T>
  readonly #kept = new Map<string, T>()
  readonly #uids = new Map<string, string>()
  readonly #following: Following

  constructor(options: InformerOptions<T>) {
    this.kind = options.kind
    this.#options = options
    this.#following = options.client.follow(options.kind, options.namespace ?? '', this, options.choice)
  }

  /** By name, or by `namespace/name`. */
  get objects(): ReadonlyMap<string, T> {
    return this.#kept
  }

  /** No callbacks afterwards. */
  stop(): Promise<void> {
    return this.#following.stop()
  }

  /** Stores an object newer than what the watch has delivered. @returns false if nothing has changed, in the sense of `onChange` */
  learn(object: JsonObject): boolean {
    const key = objectKey(object)
    const uid = textOf(recordOf(object['metadata'])['uid'])
    const isOther = this.#uids.get(key) !== uid && this.#remove(key)
    const before = this.#kept.get(key)
    const kept = this.#options.keep(object, before, key)
    if (kept === undefined) return this.#remove(key) || isOther
    this.#kept.set(key, kept)
    this.#uids.set(key, uid)
    // An object may have been mutated.
    return kept !== before || typeof kept === 'object'
  }

  onReplace(objects: readonly JsonObject[]): void {
    const keys = new Set(objects.map(objectKey))
    for (const key of this.#kept.keys()) if (!keys.has(key)) this.#remove(key)
    for (const object of objects) this.learn(object)
    this.listed = true
    this.#options.onChange?.()
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    const isChanged = type === 'DELETED' ? this.#remove(objectKey(object)) : this.learn(object)
    if (isChanged) this.#options.onChange?.()
  }

  onState(current: boolean, message: string): void {
    this.#options.onState?.(current, message)
    this.current = current
    this.message = message
  }

  onVersion(resourceVersion: string): void {
    this.#options.onVersion?.(resourceVersion)
  }

  #remove(key: string): boolean {
    const kept = this.#kept.get(key)
    if (kept === undefined) return false
    this.#kept.delete(key)
    this.#uids.delete(key)
    this.#options.onGone?.(kept, key)
    return true
  }
}

/** `namespace/name`, or `name` of a cluster-scoped object. */
function objectKey(object: JsonObject): string {
  const namespace = namespaceOf(object)
  return namespace === '' ? nameOf(object) : `${namespace}/${nameOf(object)}`
}
