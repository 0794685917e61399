// Which requests may change an object's spec.replicas. Cheap: runs for every request to a cluster that checks scale writes.

import type { RequestInfo } from './request-info.ts'

export type ScalableKind = 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'ReplicationController'

/** The object whose replicas a request writes. */
export interface ScaleTarget {
  readonly apiGroup: string
  readonly apiVersion: string
  /** '' = it is cluster-scoped. */
  readonly namespace: string
  /** Plural; the scaled object's even if `isScale`. */
  readonly resource: string
  readonly name: string
  /** The request is for the subresource `scale`. */
  readonly isScale: boolean
  /** A built-in kind of Kubernetes: its defaults and body format are known here. */
  readonly builtIn: boolean
}

const KINDS: Readonly<Record<string, ScalableKind>> = {
  deployments: 'Deployment',
  replicasets: 'ReplicaSet',
  statefulsets: 'StatefulSet',
  replicationcontrollers: 'ReplicationController',
}

/** Group of Cluster API, whose autoscaler writes the object itself or its /scale. */
export const CLUSTER_API_GROUP = 'cluster.x-k8s.io'

const APPS: ReadonlySet<string> = new Set(['deployments', 'replicasets', 'statefulsets'])
const CLUSTER_API: ReadonlySet<string> = new Set(['machinedeployments', 'machinesets', 'machinepools'])

/**
 * PUT and PATCH of the workloads of Kubernetes and of Cluster API, and of any `/scale`. Nothing else writes the spec.replicas of an
 * existing object.
 * @param clusterApiGroup group of the machines, if it was renamed
 * @returns undefined = the request scales nothing
 */
export function scaleTargetOf(info: RequestInfo, clusterApiGroup: string = CLUSTER_API_GROUP): ScaleTarget | undefined {
  const { verb, isResourceRequest, subresource, name, apiGroup, apiVersion, resource, namespace } = info
  if ((verb !== 'update' && verb !== 'patch') || !isResourceRequest || name === '') return undefined
  const isScale = subresource === 'scale'
  if (!isScale && subresource !== '') return undefined
  const builtIn = isBuiltIn(apiGroup, resource)
  if (!isScale && !builtIn && !(apiGroup === clusterApiGroup && CLUSTER_API.has(resource))) return undefined
  return { apiGroup, apiVersion, namespace, resource, name, isScale, builtIn }
}

function isBuiltIn(apiGroup: string, resource: string): boolean {
  return apiGroup === 'apps' ? APPS.has(resource) : apiGroup === '' && resource === 'replicationcontrollers'
}

/** Raw path of the object, or of its `/scale`. */
export function scalePath(
  { apiGroup, apiVersion, namespace, resource, name }: ScaleTarget,
  subresource: '' | '/scale',
): string {
  const api =
    apiGroup === ''
      ? `/api/${encodeURIComponent(apiVersion)}`
      : `/apis/${encodeURIComponent(apiGroup)}/${encodeURIComponent(apiVersion)}`
  const within = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${api}${within}/${encodeURIComponent(resource)}/${encodeURIComponent(name)}${subresource}`
}

/** `deployments/web` or `machinesets.cluster.x-k8s.io/a`; for people. */
export function scaleName({ apiGroup, resource, name }: ScaleTarget): string {
  return apiGroup === '' || apiGroup === 'apps' ? `${resource}/${name}` : `${resource}.${apiGroup}/${name}`
}

/** @returns undefined = its pods are unknown here */
export function scalableKind({ builtIn, resource }: ScaleTarget): ScalableKind | undefined {
  return builtIn ? KINDS[resource] : undefined
}
