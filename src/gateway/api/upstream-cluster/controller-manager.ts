// spec.controllerManager of an UpstreamCluster: how this cluster's kube-controller-manager orders the pods of a scale-down, where it differs from the
// default of Kubernetes 1.31 and later. Added; KubeGateway has no equivalent.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { CONTROLLER_MANAGER_SCHEMA } from './controller-manager-schema.ts'

/** Before 1.31, restarts of sidecars were not compared (kubernetes/kubernetes PR 124952). */
export type ControllerManager = ValueOf<typeof CONTROLLER_MANAGER_SCHEMA>
