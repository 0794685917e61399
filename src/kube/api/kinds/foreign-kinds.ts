// Kinds that the gateway reads on other API servers; it does not serve them and knows only their names.

import type { ResourceKind } from '../resource-kind.ts'

interface ForeignKind {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
}

export function foreignKind({ group, version, kind, plural, namespaced }: ForeignKind): ResourceKind {
  return {
    group,
    version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced,
    hasStatus: true,
    hasGeneration: true,
    schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    columns: [],
    selectableFields: [],
    check: () => [],
  }
}

const apps = (kind: string, plural: string): ResourceKind =>
  foreignKind({ group: 'apps', version: 'v1', kind, plural, namespaced: true })

export const PODS: ResourceKind = foreignKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
})
export const NODES: ResourceKind = foreignKind({
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  namespaced: false,
})
export const ENDPOINT_SLICES: ResourceKind = foreignKind({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
})
export const CONFIG_MAPS: ResourceKind = foreignKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
})
export const DEPLOYMENTS: ResourceKind = apps('Deployment', 'deployments')
export const STATEFUL_SETS: ResourceKind = apps('StatefulSet', 'statefulsets')
export const REPLICA_SETS: ResourceKind = apps('ReplicaSet', 'replicasets')
export const REPLICATION_CONTROLLERS: ResourceKind = foreignKind({
  group: '',
  version: 'v1',
  kind: 'ReplicationController',
  plural: 'replicationcontrollers',
  namespaced: true,
})
export const VALIDATING_WEBHOOK_CONFIGURATIONS: ResourceKind = foreignKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
})
