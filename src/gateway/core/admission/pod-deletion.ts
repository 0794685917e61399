// Which requests delete pods that PodProtectors may speak for, or may end one by what they write. Cheap: asked of every request to a protected cluster.

import type { CompiledCluster, CompiledProtection } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'

/** A deletion, the deletion of a collection, an eviction, or a write of a pod, where pods are protected; undefined = nobody need be asked. */
export function protectionOf({ protection }: CompiledCluster, info: RequestInfo): CompiledProtection | undefined {
  if (
    protection === undefined ||
    !(isPodDeletion(info) || isPodWrite(info)) ||
    protection.excludedNamespaces.has(info.namespace)
  )
    return undefined
  return protection
}

/** Its body says whether it ends the pod (gateway/core/policy/ending-writes.ts). */
export function isPodWrite({ resource, apiGroup, subresource, verb, name, namespace }: RequestInfo): boolean {
  return (
    (verb === 'patch' || verb === 'update') &&
    resource === 'pods' &&
    apiGroup === '' &&
    subresource === '' &&
    name !== '' &&
    namespace !== ''
  )
}

/** Across namespaces there is no deletion of pods. */
function isPodDeletion(info: RequestInfo): boolean {
  const { resource, apiGroup, namespace, verb, subresource, name } = info
  if (resource !== 'pods' || !info.isResourceRequest || apiGroup !== '' || namespace === '') return false
  if (verb === 'delete' || verb === 'deletecollection') return subresource === ''
  return verb === 'create' && subresource === 'eviction' && name !== ''
}
