// Index of exclusive claims, for kinds whose objects are validated against each other on every
// write: kept in sync with the store, so that a write only compares objects with the same claims.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import type { ObjectStore } from '../api/object-store.ts'

/** By claim, then by `namespace/name`. */
type Claimants = Map<string, Map<string, JsonObject>>

export class CurrentObjects {
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
