// spec.controllerManager of an UpstreamCluster: how this cluster's kube-controller-manager orders the pods of a scale-down, where it differs from the
// default of Kubernetes 1.31 and later. Added; KubeGateway has no equivalent.

import { defaultsTo, flag, object, type ValueOf } from '../../../kit/api/json/json-schema.ts'

export const CONTROLLER_MANAGER_SCHEMA = object(
  'How kube-controller-manager of this cluster orders the pods that a scale-down deletes, which the gateway predicts. ' +
    'Default: as in Kubernetes 1.31 and later.',
  {
    podDeletionCost: defaultsTo(true, flag('The value of its feature gate PodDeletionCost.')),
    logarithmicScaleDown: defaultsTo(true, flag('The value of its feature gate LogarithmicScaleDown.')),
    sidecarRestarts: defaultsTo(
      true,
      flag('Whether it also compares restarts of sidecar containers. Set it to false for versions before 1.31.'),
    ),
  },
)

/** Before 1.31, restarts of sidecars were not compared (kubernetes/kubernetes PR 124952). */
export type ControllerManager = ValueOf<typeof CONTROLLER_MANAGER_SCHEMA>
