// The one definition of disruptive requests (they remove pods or nodes, or what keeps them), for the degrade modes NoDisruption and
// Limited. This file covers what a request's head says; incidents/request/ reads the bodies.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { scaleTargetOf } from '../request/scale-target.ts'
import { queryOf, queryValues } from '../request/write-query.ts'
import { endingWriteOf } from './ending-writes.ts'

/**
 * `removal`: removes something, unless it is a dry run. The others are writes of an existing object, and the body decides: `replicas`,
 * whether a workload or a node group shrinks; `write`, whether it ends pods in another way (ending-writes.ts).
 */
export type Disruption = 'removal' | 'replicas' | 'write'

/** What a request may disrupt; undefined = nothing, whatever its body says. */
export function disruptionOf(info: RequestInfo, user: UserInfo): Disruption | undefined {
  if (isRemoval(info, user)) return 'removal'
  if (scaleTargetOf(info) !== undefined) return 'replicas'
  return endingWriteOf(info) === undefined ? undefined : 'write'
}

/**
 * Whether the query asks for a dry run. For an update or a patch this is final: any value either is one, or is refused upstream. For a
 * removal the body has the last word.
 */
export function isDryRunQuery(target: string): boolean {
  return queryValues(queryOf(target), DRY_RUN).size > 0
}

const DRY_RUN: ReadonlySet<string> = new Set(['dryRun'])
const GROUP_NODES = 'system:nodes'
const NODE_USER = 'system:node:'

/** `delete`, `deletecollection` and evictions, except of what comes and goes constantly in a healthy cluster. */
export function isRemoval(info: RequestInfo, user: UserInfo): boolean {
  if (!info.isResourceRequest) return false
  switch (info.verb) {
    case 'create':
      return isEviction(info)
    case 'delete':
    case 'deletecollection':
      // A DELETE through a proxy is for the program behind it; a status or a token can't be deleted.
      return info.subresource === '' && !isTransient(info) && !isKubeletFinishing(info, user)
    default:
      return false
  }
}

/** Upstream answers evictions and deletions of anything else with 404 or 405. */
export function isEviction({ resource, subresource, apiGroup, verb }: RequestInfo): boolean {
  return resource === 'pods' && subresource === 'eviction' && apiGroup === '' && verb === 'create'
}

/** Objects that only describe others and are recreated when needed: Leases, Events, EndpointSlices. */
function isTransient({ resource, apiGroup }: RequestInfo): boolean {
  switch (resource) {
    case 'leases':
      return apiGroup === 'coordination.k8s.io'
    case 'events':
      return apiGroup === '' || apiGroup === 'events.k8s.io'
    case 'endpointslices':
      return apiGroup === 'discovery.k8s.io'
    default:
      return false
  }
}

/**
 * A kubelet deletes one of its own pods when that has a deletionTimestamp and its containers have ended
 * (pkg/kubelet/status/status_manager.go, syncPod), or a mirror pod whose static pod is gone; kube-apiserver refuses it pods of other nodes
 * (plugin/pkg/admission/noderestriction). So the pod need not be checked: otherwise every pod deleted before the incident would stay.
 */
function isKubeletFinishing({ resource, apiGroup, verb }: RequestInfo, { name, groups }: UserInfo): boolean {
  return (
    resource === 'pods' &&
    apiGroup === '' &&
    verb === 'delete' &&
    name.startsWith(NODE_USER) &&
    groups.includes(GROUP_NODES)
  )
}
