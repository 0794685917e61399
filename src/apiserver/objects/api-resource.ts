// A resource as clients see it in discovery and OpenAPI.

import type { ResourceKind } from '../../api/ports/resource-kind.ts'

/** `listKind` is '' where it cannot be listed. */
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
  readonly subresources: readonly Subresource[]
}

export interface Subresource {
  readonly name: string
  readonly verbs: readonly string[]
}
