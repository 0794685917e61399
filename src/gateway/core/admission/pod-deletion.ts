// Which requests delete pods that PodProtectors may guard, or may end one by a write. Cheap: runs for every request to a protected cluster.

import type { CompiledCluster, CompiledProtection } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'

/** A deletion, a collection deletion, an eviction, or a pod write, where pods are protected; undefined = no check needed. */
export function protectionOf({ protection }: CompiledCluster, info: RequestInfo): CompiledProtection | undefined {
  if (
    protection === undefined ||
    !(isPodDeletion(info) || isPodWrite(info)) ||
    protection.excludedNamespaces.has(info.namespace)
  )
    return undefined
  return protection
}

/** Only its body says whether it ends the pod (core/policy/ending-writes.ts). */
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

/** Pods can't be deleted across namespaces. */
function isPodDeletion(info: RequestInfo): boolean {
  const { resource, apiGroup, namespace, verb, subresource, name } = info
  if (resource !== 'pods' || !info.isResourceRequest || apiGroup !== '' || namespace === '') return false
  if (verb === 'delete' || verb === 'deletecollection') return subresource === ''
  return verb === 'create' && subresource === 'eviction' && name !== ''
}
