// spec.controllerManager of an UpstreamCluster: how the kube-controller-manager of this cluster orders the pods of a scale-down, where it
// differs from the default of Kubernetes 1.31 and later. Added; KubeGateway has nothing like it.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { CONTROLLER_MANAGER_SCHEMA } from './controller-manager-schema.ts'

/** Before 1.31 it did not compare restarts of sidecars (kubernetes/kubernetes PR 124952). */
export type ControllerManager = ValueOf<typeof CONTROLLER_MANAGER_SCHEMA>
