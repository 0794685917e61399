// DEMO ONLY. The kinds that the demo's apiservers serve: one table, from which routes, discovery and OpenAPI are made.

/** One kind, as discovery describes it. */
export interface Resource {
  readonly group: string
  readonly version: string
  /** Plural, as in the path. */
  readonly resource: string
  readonly singular: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly Subresource[]
}

export interface Subresource {
  readonly name: string
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly verbs: readonly string[]
}

const ALL_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const CREATE_ONLY = ['create']
const READ_WRITE = ['get', 'patch', 'update']

interface Extra {
  readonly cluster?: boolean
  readonly short?: string
  readonly all?: boolean
  readonly status?: boolean
  readonly scale?: boolean
  readonly more?: readonly Subresource[]
  readonly verbs?: readonly string[]
}

function define(groupVersion: string, kind: string, resource: string, extra: Extra = {}): Resource {
  const slash = groupVersion.indexOf('/')
  const group = slash < 0 ? '' : groupVersion.slice(0, slash)
  const version = groupVersion.slice(slash + 1)
  const subresources: Subresource[] = [...(extra.more ?? [])]
  if (extra.scale)
    subresources.push({ name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: READ_WRITE })
  if (extra.status) subresources.push({ name: 'status', group, version, kind, verbs: READ_WRITE })
  return {
    group,
    version,
    resource,
    singular: kind.toLowerCase(),
    kind,
    namespaced: extra.cluster !== true,
    verbs: extra.verbs ?? ALL_VERBS,
    shortNames: extra.short === undefined ? [] : [extra.short],
    categories: extra.all ? ['all'] : [],
    subresources,
  }
}

const POD_LOG: Subresource = { name: 'log', group: '', version: 'v1', kind: 'Pod', verbs: ['get'] }
const POD_EVICTION: Subresource = {
  name: 'eviction',
  group: 'policy',
  version: 'v1',
  kind: 'Eviction',
  verbs: CREATE_ONLY,
}
const REVIEW: Extra = { cluster: true, verbs: CREATE_ONLY }

const PODS: Resource = define('v1', 'Pod', 'pods', {
  short: 'po',
  all: true,
  status: true,
  more: [POD_EVICTION, POD_LOG],
})
const NODES: Resource = define('v1', 'Node', 'nodes', { cluster: true, short: 'no', status: true })
const NAMESPACES: Resource = define('v1', 'Namespace', 'namespaces', { cluster: true, short: 'ns', status: true })
const DEPLOYMENTS: Resource = define('apps/v1', 'Deployment', 'deployments', {
  short: 'deploy',
  all: true,
  status: true,
  scale: true,
})
const LEASES: Resource = define('coordination.k8s.io/v1', 'Lease', 'leases')
const EVENTS: Resource = define('v1', 'Event', 'events', { short: 'ev' })
const SERVICES: Resource = define('v1', 'Service', 'services', { short: 'svc', all: true, status: true })
const CONFIG_MAPS: Resource = define('v1', 'ConfigMap', 'configmaps', { short: 'cm' })
const SECRETS: Resource = define('v1', 'Secret', 'secrets')
const SERVICE_ACCOUNTS: Resource = define('v1', 'ServiceAccount', 'serviceaccounts', { short: 'sa' })

/** Kinds that other files speak of by name. */
export const KINDS: Readonly<Record<KindName, Resource>> = {
  pods: PODS,
  nodes: NODES,
  namespaces: NAMESPACES,
  deployments: DEPLOYMENTS,
  leases: LEASES,
  events: EVENTS,
  services: SERVICES,
  configmaps: CONFIG_MAPS,
  secrets: SECRETS,
  serviceaccounts: SERVICE_ACCOUNTS,
}

export type KindName =
  | 'pods'
  | 'nodes'
  | 'namespaces'
  | 'deployments'
  | 'leases'
  | 'events'
  | 'services'
  | 'configmaps'
  | 'secrets'
  | 'serviceaccounts'

export const RESOURCES: readonly Resource[] = [
  ...Object.values(KINDS),
  define('authentication.k8s.io/v1', 'TokenReview', 'tokenreviews', REVIEW),
  define('authentication.k8s.io/v1', 'SelfSubjectReview', 'selfsubjectreviews', REVIEW),
  define('authorization.k8s.io/v1', 'SubjectAccessReview', 'subjectaccessreviews', REVIEW),
  define('authorization.k8s.io/v1', 'SelfSubjectAccessReview', 'selfsubjectaccessreviews', REVIEW),
]

export function findResource(group: string, version: string, resource: string): Resource | undefined {
  return RESOURCES.find((one) => one.resource === resource && one.group === group && one.version === version)
}

/** `v1`, `apps/v1`. */
export function groupVersionOf({ group, version }: { group: string; version: string }): string {
  return group === '' ? version : `${group}/${version}`
}
