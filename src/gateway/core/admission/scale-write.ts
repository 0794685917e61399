// Which writes of replicas spec.scaleProtection checks. Cheap: runs for every request to a cluster that has it.

import type { CompiledCluster, CompiledScaleProtection } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { type ScaleTarget, scaleTargetOf } from '../request/scale-target.ts'

/** The controllers' own users (kube-controller-manager with and without --use-service-account-credentials). */
const DEPLOYMENT_CONTROLLER = 'system:serviceaccount:kube-system:deployment-controller'
const CONTROLLER_MANAGER = 'system:kube-controller-manager'

/** undefined = no check needed. */
export function scaleProtectionOf(
  { scaleProtection }: CompiledCluster,
  info: RequestInfo,
  user: string,
): CompiledScaleProtection | undefined {
  if (scaleProtection === undefined) return undefined
  const target = scaleTargetOf(info)
  if (target === undefined || scaleProtection.excludedNamespaces.has(target.namespace)) return undefined
  return isDeploymentController(user, target) ? undefined : scaleProtection
}

/**
 * The deployment controller only spreads a Deployment's replicas, checked when they were written, over its ReplicaSets. The horizontal
 * autoscaler, which may be the same user, writes /scale.
 */
function isDeploymentController(user: string, { resource, isScale }: ScaleTarget): boolean {
  return user === DEPLOYMENT_CONTROLLER || (user === CONTROLLER_MANAGER && resource === 'replicasets' && !isScale)
}
