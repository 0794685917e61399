// Everything that an API server serves below /api and /apis: the kinds it stores, and reviews, which it answers
// without storing anything. Discovery, OpenAPI and authorization are derived from this list.

import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { apiVersionOf, type KindSubresource, type ResourceKind } from '../../kube/api/resource-kind.ts'
import type { ApiResource, ServedSubresource } from './api-resource.ts'

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
/** Namespaces can only be deleted by name. */
const NAMESPACE_VERBS = STORED_VERBS.filter((verb) => verb !== 'deletecollection')
const METHOD_VERBS = { GET: 'get', POST: 'create' } as const
const READ_WRITE = ['get', 'patch', 'update']
const STATUS: ServedSubresource = { name: 'status', verbs: READ_WRITE }

export function apiResources(kinds: readonly ResourceKind[], reviews: readonly ApiResource[]): readonly ApiResource[] {
  return [...kinds.map(storedResource), ...reviews]
}

function storedResource(kind: ResourceKind): ApiResource {
  const { group, version, listKind, plural, singular, shortNames, categories, namespaced, schema } = kind
  const names = { group, version, kind: kind.kind, listKind, plural, singular, shortNames, categories }
  const verbs = kind === NAMESPACES ? NAMESPACE_VERBS : STORED_VERBS
  return { ...names, namespaced, verbs, subresources: subresourcesOf(kind), schema }
}

function subresourcesOf({ hasStatus, subresources = [] }: ResourceKind): ServedSubresource[] {
  return [...subresources.map(apiSubresource), ...(hasStatus ? [STATUS] : [])]
}

function apiSubresource(subresource: KindSubresource): ServedSubresource {
  const { name, group, version, kind } = subresource
  const verbs = 'connect' in subresource ? subresource.methods.map((method) => METHOD_VERBS[method]) : READ_WRITE
  return { name, verbs, of: { group, version, kind } }
}

/** In the order of the resources; the first version of a group is the preferred one. */
export function apiGroups(resources: readonly ApiResource[]): readonly ApiGroup[] {
  const byName = Map.groupBy(resources, ({ group }) => group)
  return [...byName].map(([name, members]) => {
    const byVersion = Map.groupBy(members, ({ version }) => version)
    const versions = [...byVersion].map(([version, resources]) => {
      return { version, groupVersion: apiVersionOf({ group: name, version }), resources }
    })
    return { name, versions }
  })
}
