// A resource as shown to clients in discovery and OpenAPI.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'

/** `listKind` is '' if it can't be listed. */
export interface ApiResource
  extends Pick<
    ResourceKind,
    | 'group'
    | 'version'
    | 'kind'
    | 'listKind'
    | 'plural'
    | 'singular'
    | 'shortNames'
    | 'categories'
    | 'namespaced'
    | 'schema'
  > {
  readonly verbs: readonly string[]
  readonly subresources: readonly ServedSubresource[]
}

export interface ServedSubresource {
  readonly name: string
  readonly verbs: readonly string[]
  /** Kind of request and response, if it is not the resource itself. */
  readonly of?: GroupVersionKind
}

interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** A cluster-scoped review: it can only be created, is not stored, and is returned with its status. */
export interface ReviewKind extends ApiResource {
  /** Returns everything except apiVersion, kind and metadata. @throws {StatusError} 400, 422 */
  answer(body: JsonObject, user: UserInfo): JsonObject
}
