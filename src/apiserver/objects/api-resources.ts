// Everything that the API server serves below /api and /apis: the kinds that it stores, and reviews, which it answers
// without storing anything. Discovery, OpenAPI and authorization follow from this list.

import { NAMESPACES, SCHEME } from '../../api/kinds/scheme.ts'
import { apiVersionOf, type ResourceKind } from '../../api/ports/resource-kind.ts'
import type { ApiResource, Subresource } from './api-resource.ts'
import { SELF_REVIEW_KINDS } from './self-review-kinds.ts'

export interface ApiGroup {
  /** '' = the core group. */
  readonly name: string
  readonly versions: readonly ApiGroupVersion[]
}

export interface ApiGroupVersion {
  readonly version: string
  /** `v1`, `proxy.kubegateway.io/v1alpha1`. */
  readonly groupVersion: string
  readonly resources: readonly ApiResource[]
}

const STORED_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
/** Namespaces are only deleted by name. */
const NAMESPACE_VERBS = STORED_VERBS.filter((verb) => verb !== 'deletecollection')
const STATUS: Subresource = { name: 'status', verbs: ['get', 'patch', 'update'] }

export const API_RESOURCES: readonly ApiResource[] = [...SCHEME.map(storedResource), ...SELF_REVIEW_KINDS]

/** In the order of API_RESOURCES; the first version of a group is the preferred one. */
export const API_GROUPS: readonly ApiGroup[] = groups()

function storedResource(kind: ResourceKind): ApiResource {
  const { group, version, listKind, plural, singular, shortNames, categories, namespaced, schema } = kind
  const names = { group, version, kind: kind.kind, listKind, plural, singular, shortNames, categories }
  const verbs = kind === NAMESPACES ? NAMESPACE_VERBS : STORED_VERBS
  return { ...names, namespaced, verbs, subresources: kind.hasStatus ? [STATUS] : [], schema }
}

function groups(): ApiGroup[] {
  const byName = Map.groupBy(API_RESOURCES, ({ group }) => group)
  return [...byName].map(([name, members]) => {
    const byVersion = Map.groupBy(members, ({ version }) => version)
    const versions = [...byVersion].map(([version, resources]) => {
      return { version, groupVersion: apiVersionOf({ group: name, version }), resources }
    })
    return { name, versions }
  })
}
