// State shared by the parts of the registry, and the arguments of every write.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import { type ObjectWriter, type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import type { ObjectKey, ObjectStore } from '../api/object-store.ts'
import type { WriteOptions } from '../http/query-options.ts'
import type { CurrentObjects } from './current.ts'

export interface RegistryDeps {
  readonly store: ObjectStore
  readonly kinds: readonly ResourceKind[]
  readonly pem: PemChecks
  /** Wall clock, milliseconds. */
  now(): number
  /** A UUID, version 4. */
  uuid(): string
  /** In [0, 1). */
  random(): number
}

/** Shared by the parts of the registry. */
export interface RegistryContext extends RegistryDeps {
  readonly current: CurrentObjects
}

export interface WriteCall {
  readonly options: WriteOptions
  /** Warnings for the client are added here. */
  readonly warnings: string[]
  /** Whether the gateway itself writes: the size of the object is then unlimited. Default: a client writes. */
  readonly isOwn?: boolean
  /** Default: none; the gateway itself writes, or no credential is needed. */
  readonly by?: ObjectWriter | undefined
}

export interface Written {
  readonly object: JsonObject
  readonly created: boolean
}

export function keyOf(kind: ResourceKind, at: ObjectName): ObjectKey {
  return { resource: resourceName(kind), namespace: kind.namespaced ? at.namespace : '', name: at.name }
}
