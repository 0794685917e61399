// Messages between the request path, the webhook and the ledger of pod protection: plain data, because it crosses threads.

import type { JsonObject } from '../../kit/api/json/json-object.ts'

/** The health criterion by which a pod's deletion is evaluated (annotation `podseidon.kubewharf.io/health-criterion`). Default Available. */
export type HealthCriterion = 'Available' | 'Ready' | 'Running' | 'Scheduled'

/** The facts about a pod that protection needs. */
export interface PodFacts {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** resourceVersion as read; '' = unknown. */
  readonly resourceVersion: string
  readonly labels: Readonly<Record<string, string>>
  /** Annotation `podseidon.kubewharf.io/force-delete`, whatever its value: the deletion is recorded, never refused. */
  readonly forceDelete: boolean
  /** Annotation `podseidon.kubewharf.io/health-criterion` of the pod. */
  readonly criterion: HealthCriterion
  /** The pod has a deletionTimestamp. */
  readonly terminating: boolean
  /** Condition PodScheduled is True. */
  readonly scheduled: boolean
  /** Phase is Running. */
  readonly running: boolean
  /** Condition Ready is True. */
  readonly ready: boolean
  /**
   * lastTransitionTime of condition Ready, by the kubelet's clock: milliseconds since the epoch, in whole seconds, as are the next three; 0 if the
   * pod is not ready or the time is missing.
   */
  readonly readySinceMs: number
  /** status.startTime, when the kubelet accepted the pod, by the kubelet's clock. 0 = unknown. */
  readonly startedMs: number
  /** creationTimestamp, by the API server's clock. 0 = unknown. */
  readonly createdMs: number
  /**
   * Last status write (metadata.managedFields) by the manager of condition Ready, by the API server's clock. The pod did not become ready later. 0 =
   * unknown.
   */
  readonly readyWrittenMs: number
}

/** One requested deletion or eviction. */
export interface ProtectionRequest {
  readonly cell: string
  readonly cause: 'DeletePod' | 'EvictPod'
  /** Where it was seen. Only the filter can release a reservation: it sees upstream's response. */
  readonly via: 'filter' | 'webhook'
  readonly pod: PodFacts
  /** Criterion from the Eviction's own annotation, which overrides the pod's; undefined = none. */
  readonly criterion: HealthCriterion | undefined
  /** The requesting user; for metrics. */
  readonly user: string
  /** Evaluate only: nothing will be deleted, so nothing is recorded. */
  readonly dryRun: boolean
  /** Shadow mode: recorded and counted, never refused. */
  readonly shadow: boolean
  /** Milliseconds after which an answer is useless. */
  readonly timeoutMs: number
}

/** Names from Podseidon's metrics (webhook/observer/observer.go), each a label value. */
export type ProtectionStatus =
  /** No protector selects the pod. */
  | 'Unmatched'
  | 'AlreadyTerminating'
  /** Already reserved for the same pod. */
  | 'AlreadyAdmitted'
  /** Not ready: deleting it loses nothing. */
  | 'AlreadyUnready'
  /** Ready, but for less than minReadySeconds of every protector. */
  | 'StillUnavailable'
  /** Does not meet its own criterion. */
  | 'AlreadyUnhealthy'
  | 'AdmittedAll'
  /** May well pass in a moment: too many admitted deletions have not been observed yet. */
  | 'RetryAdvised'
  /** Too few pods would be left. */
  | 'Rejected'
  /** The ledger could not be written or read in time. */
  | 'Error'

/** metav1.StatusCause. */
export interface ProtectionCause {
  readonly reason: string
  readonly message: string
  readonly field: string
}

/** A deletion recorded in the admission histories of all protectors of a pod. */
export interface Reservation {
  readonly cell: string
  readonly uid: string
  /** The protectors in which it is new; in others it existed before, and is not ours to take back. */
  readonly holds: readonly ReservationHold[]
}

export interface ReservationHold {
  readonly namespace: string
  readonly name: string
  /** uid of the PodProtector: a recreated one of the same name knows nothing of it. */
  readonly uid: string
  /** startTime of the bucket as written: admitting the pod again changes it, and then the bucket stays. */
  readonly startTime: string
}

export interface ProtectionVerdict {
  readonly status: ProtectionStatus
  /** The decision; false also if shadow mode or force-delete let the deletion pass: see `overridden`. */
  readonly admitted: boolean
  /** Why it passes although it was not admitted; '' if it does not. */
  readonly overridden: '' | 'shadow' | 'force-delete' | 'failure-policy'
  /** `namespace/name` of the first protector that refuses; '' = none. */
  readonly protector: string
  /** For people, with numbers; '' if admitted. */
  readonly message: string
  readonly causes: readonly ProtectionCause[]
  /** 0 = retrying soon is pointless. */
  readonly retryAfterSeconds: number
  /** Nothing was reserved, because losing the pod as read costs nothing: it must not change before it is deleted. */
  readonly freePass: boolean
  /** To be released if upstream refuses the deletion. */
  readonly reservation: Reservation | undefined
}

/** The pods of one ReplicaSet or StatefulSet that will be deleted. */
export interface LeavingPods {
  readonly certain: readonly PodFacts[]
  /** `count` of `among` pods will be deleted; which ones is open. `pods` are those that protectors are asked about. */
  readonly possible: { readonly count: number; readonly among: number; readonly pods: readonly PodFacts[] }
}

export interface ScaleDownQuestion {
  readonly cell: string
  /** Deployment, StatefulSet, ReplicaSet, ReplicationController. */
  readonly kind: string
  /** As it is now; its pod template is not needed. */
  readonly workload: JsonObject
  /** spec.replicas after the change. */
  readonly replicas: number
  readonly sets: readonly LeavingPods[]
  /** Milliseconds after which an answer is useless. */
  readonly timeoutMs: number
}

/** How one PodProtector evaluates a scale-down, with the number it will require afterwards. */
export interface ProtectorAnswer {
  /** `namespace/name`. */
  readonly protector: string
  /** spec.minAvailable now, and after the change. */
  readonly required: number
  readonly requiredAfter: number
  readonly counted: number
  /** Admitted deletions that have not been observed yet. */
  readonly beingDeleted: number
  /** Number of leaving pods that it protects. */
  readonly deletions: number
  /** Lower and upper bound of the deletions refused: which pods leave may be open. */
  readonly refused: { readonly least: number; readonly most: number }
  /** Deletions refused only for now: they pass once earlier ones have been observed. */
  readonly delayed: number
  /** The cell's pods were never counted, or not recently: the numbers mean nothing. */
  readonly stale: boolean
}

export interface ScaleDownAnswer {
  /** Protectors that select any of the pods, sorted. */
  readonly protectors: readonly ProtectorAnswer[]
  /** Why there is no answer; '' = there is one. */
  readonly unknown: string
}

/** The ledger, as used by the request path and the webhook. */
export interface ProtectionGate {
  /** Whether pods of the namespace may have a protector. True while unknown. */
  covers(namespace: string): boolean
  /** One verdict per request, in order; together they form one batch. Never rejects. */
  review(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]>
  /** How PodProtectors will evaluate the deletions of a scale-down. Records nothing. Never rejects. */
  reviewScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer>
  /** Upstream refused the deletion: releases the reservations. */
  release(reservations: readonly Reservation[]): void
}

/** What is asked of the ledger about replicas that are lowered. */
export type ScaleDownGate = Pick<ProtectionGate, 'covers' | 'reviewScaleDown'>

export const FORCE_DELETE_ANNOTATION = 'podseidon.kubewharf.io/force-delete'
export const HEALTH_CRITERION_ANNOTATION = 'podseidon.kubewharf.io/health-criterion'
export const REMOVE_CELL_ONCE_ANNOTATION = 'podseidon.kubewharf.io/remove-cell-once'
export const UPDATE_TRIGGER_ANNOTATION = 'podseidon.kubewharf.io/update-trigger-time'
/** Set on the workload and its PodProtector. */
export const GENERATOR_FINALIZER = 'podseidon.kubewharf.io/generator'
export const SOURCE_LABELS = {
  name: 'podseidon.kubewharf.io/source-name',
  group: 'podseidon.kubewharf.io/source-group',
  kind: 'podseidon.kubewharf.io/source-kind',
  resource: 'podseidon.kubewharf.io/source-resource',
} as const
/** Keys of audit annotations, after the filter's or webhook's prefix. */
export const AUDIT_DRY_RUN = 'dry-run'
export const AUDIT_REJECTED_BY = 'reject-by-podprotector'
