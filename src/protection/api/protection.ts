// What the request path, the webhook and the ledger of pod protection say to each other: plain data, because it crosses threads.

import type { JsonObject } from '../../kit/api/json/json-object.ts'

/** By which number a pod's deletion is evaluated (annotation `podseidon.kubewharf.io/health-criterion`). Default Available. */
export type HealthCriterion = 'Available' | 'Ready' | 'Running' | 'Scheduled'

/** What protection needs to know of a pod. */
export interface PodFacts {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** As it was read; '' = not known. */
  readonly resourceVersion: string
  readonly labels: Readonly<Record<string, string>>
  /** Annotation `podseidon.kubewharf.io/force-delete`, whatever its value: the deletion is recorded, never refused. */
  readonly forceDelete: boolean
  /** Annotation `podseidon.kubewharf.io/health-criterion` of the pod. */
  readonly criterion: HealthCriterion
  /** It has a deletionTimestamp. */
  readonly terminating: boolean
  /** Condition PodScheduled is True. */
  readonly scheduled: boolean
  /** Phase is Running. */
  readonly running: boolean
  /** Condition Ready is True. */
  readonly ready: boolean
  /**
   * By its kubelet's clock, milliseconds since the epoch, whole seconds as the next three: lastTransitionTime of condition
   * Ready; 0 when it is not ready or says no time.
   */
  readonly readySinceMs: number
  /** By its kubelet's clock: status.startTime, when the kubelet took it on. 0 = not known. */
  readonly startedMs: number
  /** By its API server's clock: creationTimestamp. 0 = not known. */
  readonly createdMs: number
  /**
   * By its API server's clock: when whoever wrote condition Ready wrote to the status last (metadata.managedFields). It was not
   * made ready later. 0 = not known.
   */
  readonly readyWrittenMs: number
}

/** One deletion or eviction that is asked for. */
export interface ProtectionRequest {
  readonly cell: string
  readonly cause: 'DeletePod' | 'EvictPod'
  /** Where it was seen. Only what the filter saw can be released: it sees upstream's answer. */
  readonly via: 'filter' | 'webhook'
  readonly pod: PodFacts
  /** Of the Eviction's own annotation, which outranks the pod's; undefined = none. */
  readonly criterion: HealthCriterion | undefined
  /** Who asks; for metrics. */
  readonly user: string
  /** Nothing will be deleted: evaluated, and nothing recorded. */
  readonly dryRun: boolean
  /** Shadow mode: recorded and counted, never refused. */
  readonly shadow: boolean
  /** Milliseconds in which an answer is of use. */
  readonly timeoutMs: number
}

/** As Podseidon's metrics name them (webhook/observer/observer.go), each a label value. */
export type ProtectionStatus =
  /** No protector selects the pod. */
  | 'Unmatched'
  | 'AlreadyTerminating'
  /** Reserved before, for the same pod. */
  | 'AlreadyAdmitted'
  /** Not ready: nothing is lost with it. */
  | 'AlreadyUnready'
  /** Ready, but not for minReadySeconds of any protector. */
  | 'StillUnavailable'
  /** Does not meet its own criterion. */
  | 'AlreadyUnhealthy'
  | 'AdmittedAll'
  /** May well pass in a moment: too many deletions are not yet seen to have happened. */
  | 'RetryAdvised'
  /** Too few would be left. */
  | 'Rejected'
  /** The ledger could not be written or read in time. */
  | 'Error'

/** metav1.StatusCause. */
export interface ProtectionCause {
  readonly reason: string
  readonly message: string
  readonly field: string
}

/** A deletion that was written to the admission histories of all protectors of a pod. */
export interface Reservation {
  readonly cell: string
  readonly uid: string
  /** The protectors in which it is new; in others it stood before, and is not ours to take back. */
  readonly holds: readonly ReservationHold[]
}

export interface ReservationHold {
  readonly namespace: string
  readonly name: string
  /** uid of the PodProtector: another one of the same name knows nothing of it. */
  readonly uid: string
  /** startTime of the bucket as it was written: whoever admits the pod once more changes it, and then it stays. */
  readonly startTime: string
}

export interface ProtectionVerdict {
  readonly status: ProtectionStatus
  /** By what was decided; false also when shadow mode or force-delete let the deletion pass: see `overridden`. */
  readonly admitted: boolean
  /** Not admitted, and yet to be let through: the reason, '' when there is none. */
  readonly overridden: '' | 'shadow' | 'force-delete' | 'failure-policy'
  /** `namespace/name` of the protector that refuses first; '' = none. */
  readonly protector: string
  /** For people, with the numbers; '' when admitted. */
  readonly message: string
  readonly causes: readonly ProtectionCause[]
  /** 0 = trying again soon is of no use. */
  readonly retryAfterSeconds: number
  /** Nothing was reserved, because the pod as it was read is none to lose: it must not change before it is deleted. */
  readonly freePass: boolean
  /** To be released when upstream does not do it. */
  readonly reservation: Reservation | undefined
}

/** The pods of one ReplicaSet or StatefulSet that go. */
export interface LeavingPods {
  readonly certain: readonly PodFacts[]
  /** `count` of `among` pods go; which ones is open. `pods` are those that protectors are asked about. */
  readonly possible: { readonly count: number; readonly among: number; readonly pods: readonly PodFacts[] }
}

export interface ScaleDownQuestion {
  readonly cell: string
  /** Deployment, StatefulSet, ReplicaSet, ReplicationController. */
  readonly kind: string
  /** As it is; its pod template is not needed. */
  readonly workload: JsonObject
  /** spec.replicas afterwards. */
  readonly replicas: number
  readonly sets: readonly LeavingPods[]
  /** Milliseconds in which an answer is of use. */
  readonly timeoutMs: number
}

/** What one PodProtector says to a scale-down, with the number that it will require afterwards. */
export interface ProtectorAnswer {
  /** `namespace/name`. */
  readonly protector: string
  /** spec.minAvailable now, and after the change. */
  readonly required: number
  readonly requiredAfter: number
  readonly counted: number
  /** Admitted before, and not yet seen to have happened. */
  readonly beingDeleted: number
  /** Of the pods that go, those that it protects. */
  readonly deletions: number
  /** So many of them are refused, at least and at most: which pods go may be open. */
  readonly refused: { readonly least: number; readonly most: number }
  /** So many are refused for now, and pass when earlier ones have been seen to happen. */
  readonly delayed: number
  /** Nobody has counted the pods of the cell, or not for long: the numbers say nothing. */
  readonly stale: boolean
}

export interface ScaleDownAnswer {
  /** Those that select any of the pods, sorted. */
  readonly protectors: readonly ProtectorAnswer[]
  /** Why nobody can say; '' = they have. */
  readonly unknown: string
}

/** The ledger, as the request path and the webhook see it. */
export interface ProtectionGate {
  /** Whether pods of the namespace may have a protector. True as long as that is not known. */
  covers(namespace: string): boolean
  /** One verdict for each request, in their order; together they are one batch. Never rejects. */
  review(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]>
  /** What PodProtectors will say to the deletions of a scale-down. Nothing is recorded. Never rejects. */
  reviewScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer>
  /** Upstream has refused: what is held is free again. */
  release(reservations: readonly Reservation[]): void
}

export const FORCE_DELETE_ANNOTATION = 'podseidon.kubewharf.io/force-delete'
export const HEALTH_CRITERION_ANNOTATION = 'podseidon.kubewharf.io/health-criterion'
export const REMOVE_CELL_ONCE_ANNOTATION = 'podseidon.kubewharf.io/remove-cell-once'
export const UPDATE_TRIGGER_ANNOTATION = 'podseidon.kubewharf.io/update-trigger-time'
/** On the workload and on its PodProtector. */
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
