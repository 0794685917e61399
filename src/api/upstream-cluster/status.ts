// status of an UpstreamCluster: what the gateways report. Conditions and endpoints are written by the leader among them,
// every replica writes its own entry of `gateways`.

import type { AutoDegradeStatus } from './auto-degrade.ts'
import type { AutoscalerReport } from './cluster-autoscaler.ts'

/** metav1.Condition. */
export interface Condition {
  /** Ready, EndpointsHealthy, CredentialsValid, ClientCertificatesAccepted, Degraded; ServersResolved, LimitsShared, PodsProtected, AutoDegraded and AutoscalerHealthy where the spec asks for it. */
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  /** metadata.generation that this is about. */
  readonly observedGeneration?: number
  /** When `status` changed last, RFC 3339. */
  readonly lastTransitionTime: string
  /** CamelCase, for programs. */
  readonly reason: string
  /** For people. */
  readonly message: string
}

/** Proof of what a replica has put in force. */
export interface GatewayStatus {
  /** The replica. */
  readonly name: string
  /** How many gateway threads it runs. */
  readonly threads: number
  /** How many of them have `observedGeneration`, or a newer one, in force. */
  readonly threadsApplied: number
  /** metadata.generation that it was told to put in force last. */
  readonly observedGeneration: number
  /** When the last thread had it, RFC 3339. */
  readonly appliedAt: string
  /** What keeps it from more, or what it works without. */
  readonly message?: string
  /** Where spec.podProtection is: what it does for that. */
  readonly podProtection?: GatewayProtection
  /** When clients that matter in an incident came through it last; absent = never since it was started. */
  readonly lastSeen?: ClientsSeen
  /** Different disruptive requests that it refused in the last minute, about; absent = none. */
  readonly refusedDisruptive?: number
}

/** RFC 3339, rounded down to LAST_SEEN_STEP_MINUTES. */
export interface ClientsSeen {
  /** kube-controller-manager, which evicts pods. */
  readonly controllerManager?: string
  /** Any kubelet, which keeps its node Ready. */
  readonly kubelets?: string
}

/** So that a status is not written every second. */
export const LAST_SEEN_STEP_MINUTES = 5

/** What a replica does to protect the pods of a cluster. */
export interface GatewayProtection {
  /** spec.podProtection.cell. */
  readonly cell: string
  /**
   * `Judging`: it knows the PodProtectors. `Counting`: and it is the one that counts the pods of the cell. `Starting`: it is
   * about to. `Broken`: it cannot, and `message` says why. With another state `message` says why it generates no PodProtectors.
   */
  readonly state: 'Judging' | 'Counting' | 'Starting' | 'Broken'
  /** When the state began, RFC 3339. */
  readonly since: string
  readonly message?: string
}

/** What the leader sees of an incident. */
export interface DegradeStatus {
  /** The share of Ready nodes before it, in per cent; absent = nobody has seen it. */
  readonly readyNodesBefore?: number
  /** Where spec.degrade.auto is: what it sees and does. */
  readonly auto?: AutoDegradeStatus
  /** Where spec.degrade.recovery is: how far it is. */
  readonly recovery?: RecoveryStatus
}

/** A leader that takes over goes on from here. */
export interface RecoveryStatus {
  /** The mode that it is at. */
  readonly step: string
  /** Since when, RFC 3339. */
  readonly since: string
  /** The strictest mode that it has been at: it goes back no further. */
  readonly startedFrom: string
  /** Since when all checks have held, RFC 3339; absent = they do not. */
  readonly holdingSince?: string
  readonly checks: readonly RecoveryCheck[]
  /** What has to happen until the next mode is set. For people */
  readonly waitingFor: string
}

export interface RecoveryCheck {
  /** Endpoints, Upstream, Nodes, Disruption. */
  readonly name: string
  readonly ok: boolean
  /** What was seen. For people */
  readonly message: string
}

export interface UpstreamClusterStatus {
  /** metadata.generation that was looked at last. */
  readonly observedGeneration?: number
  readonly conditions?: readonly Condition[]
  readonly endpoints?: {
    /** Enabled and healthy. */
    readonly ready: number
    /** All in spec.servers; of one with `resolve` each address. */
    readonly total: number
  }
  readonly gateways?: readonly GatewayStatus[]
  readonly degrade?: DegradeStatus
  /** Where spec.autoscaler is, once it has been read. */
  readonly autoscaler?: AutoscalerReport
}
