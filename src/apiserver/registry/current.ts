// Index of exclusive claims, for kinds whose objects are validated against each other on every
// write: kept in sync with the store, so that a write only compares objects with the same claims.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import type { ObjectStore } from '../api/object-store.ts'

/** By claim, then by `namespace/name`. */
type Claimants = Map<string, Map<string, JsonObject>>

export class CurrentObjects {
  /**
   * Whether claims have been written that the index does not have yet: in a group of writes it learns of them at the end. It is reset when a group
   * begins; once it is set, the group must end.
   */
  isBehind = false
  readonly #store: ObjectStore
  readonly #byResource = new Map<string, Claimants>()

  constructor(store: ObjectStore) {
    this.#store = store
  }

  /** Other objects with a claim in common with `object`. */
  others(kind: ResourceKind, namespace: string, name: string, object: JsonObject): readonly JsonObject[] {
    const { claims } = kind
    if (claims === undefined) return []
    const claimants = this.#of(kind, claims)
    const own = `${namespace}/${name}`
    const others = new Map<string, JsonObject>()
    for (const claim of claims(object)) {
      for (const [key, other] of claimants.get(claim) ?? []) if (key !== own) others.set(key, other)
    }
    return [...others.values()]
  }

  /** Before a group of writes, in which no index can be begun. */
  prepare(kinds: readonly ResourceKind[]): void {
    for (const kind of kinds) if (kind.claims !== undefined) this.#of(kind, kind.claims)
  }

  /** An object has been written; undefined = there was none before, or is none now. */
  onWritten({ claims }: ResourceKind, before: JsonObject | undefined, after: JsonObject | undefined): void {
    if (claims === undefined || this.isBehind) return
    this.isBehind = !sameJson(before && claims(before), after && claims(after))
  }

  #of(kind: ResourceKind, claims: NonNullable<ResourceKind['claims']>): Claimants {
    const resource = resourceName(kind)
    const known = this.#byResource.get(resource)
    if (known !== undefined) return known
    const claimants: Claimants = new Map()
    const add = (key: string, object: JsonObject): void => {
      for (const claim of claims(object)) {
        const holders = claimants.get(claim) ?? new Map<string, JsonObject>()
        claimants.set(claim, holders.set(key, object))
      }
    }
    const remove = (key: string, object: JsonObject): void => {
      for (const claim of claims(object)) {
        const holders = claimants.get(claim)
        holders?.delete(key)
        if (holders?.size === 0) claimants.delete(claim)
      }
    }
    for (const { namespace, name, object } of this.#store.list(resource, { namespace: '' })) {
      add(`${namespace}/${name}`, object)
    }
    this.#store.watch(resource, '', this.#store.revision, ({ type, namespace, name, object, previous }) => {
      const key = `${namespace}/${name}`
      if (previous !== undefined) remove(key, previous)
      if (type !== 'DELETED') add(key, object)
    })
    this.#byResource.set(resource, claimants)
    return claimants
  }
}
