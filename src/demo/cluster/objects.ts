// The objects of a cluster as read and written by its controllers: through the registry, as separately named programs.

import { metaText } from '../../apiserver/objects/object-metadata.ts'
import type { Incoming } from '../../apiserver/objects/write-object-decode.ts'
import type { WriteCall } from '../../apiserver/registry/context.ts'
import { DELETE_NOW } from '../../apiserver/registry/deletion-options.ts'
import type { Registry } from '../../apiserver/registry/registry.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import { StatusError } from '../../kube/api/status.ts'

/** The writer's name in managedFields. */
type Program = 'kube-controller-manager' | 'kube-scheduler' | 'kubelet' | 'portcullis-demo'

export class DemoObjects {
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** Wall clock, milliseconds. */
  now(): number {
    return this.#registry.now()
  }

  get(kind: ResourceKind, namespace: string, name: string): JsonObject | undefined {
    return this.#registry.store.get({ resource: resourceName(kind), namespace, name })?.object
  }

  /** @param namespace '' = all */
  list(kind: ResourceKind, namespace = ''): JsonObject[] {
    return this.#registry.store.list(resourceName(kind), { namespace }).map(({ object }) => object)
  }

  create(kind: ResourceKind, object: JsonObject, by: Program): JsonObject {
    return this.#registry.create(kind, metaText(object, 'namespace'), incoming(object), callOf(by)).object
  }

  update(kind: ResourceKind, object: JsonObject, by: Program, subresource: '' | 'status' = ''): JsonObject {
    return this.#registry.update(kind, placeOf(object), subresource, incoming(object), callOf(by)).object
  }

  /** @param gracePeriodSeconds default: the object's own */
  remove(kind: ResourceKind, object: JsonObject, gracePeriodSeconds?: number): void {
    this.#registry.delete(kind, placeOf(object), { ...DELETE_NOW, gracePeriodSeconds })
  }

  /** Work that fails for one object, such as creating pods from an invalid template, is retried with the next step. */
  attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }
}

function placeOf(object: JsonObject): { readonly namespace: string; readonly name: string } {
  return { namespace: metaText(object, 'namespace'), name: metaText(object, 'name') }
}

function incoming(value: JsonObject): Incoming {
  return { value, duplicates: [], strictErrors: [], text: '' }
}

function callOf(manager: Program): WriteCall {
  return { options: { dryRun: false, fieldValidation: 'Ignore', manager, force: false }, warnings: [] }
}
