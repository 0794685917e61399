// spec.controllerManager of an UpstreamCluster: how the kube-controller-manager of this cluster orders the pods of a scale-down, where it
// differs from the default of Kubernetes 1.31 and later. Added; KubeGateway has nothing like it.

export interface ControllerManager {
  /** Its feature gate PodDeletionCost. */
  readonly podDeletionCost?: boolean
  /** Its feature gate LogarithmicScaleDown. */
  readonly logarithmicScaleDown?: boolean
  /** Whether it compares restarts of sidecars; before 1.31 it does not (kubernetes/kubernetes PR 124952). */
  readonly sidecarRestarts?: boolean
}
