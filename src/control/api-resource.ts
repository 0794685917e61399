// A resource as clients see it in discovery and OpenAPI.

import type { JsonSchema } from '../api/json-schema.ts'

export interface ApiResource {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  /** '' = there are no lists of it. */
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly subresources: readonly Subresource[]
  readonly schema: JsonSchema
}

export interface Subresource {
  readonly name: string
  readonly verbs: readonly string[]
}
