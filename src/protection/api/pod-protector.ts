// PodProtector (podseidon.kubewharf.io/v1alpha1, namespaced): how many pods of a workload must stay available, and the deletions admitted so far.
// Podseidon's manifests apply unchanged.

import type { ValueOf } from '../../kit/api/json/json-schema.ts'
import type { KubeObject } from '../../kube/api/meta.ts'
import type { POD_PROTECTOR_SPEC_SCHEMA, POD_PROTECTOR_STATUS_SCHEMA } from './schema.ts'

export interface PodProtector extends KubeObject {
  readonly spec: PodProtectorSpec
  readonly status?: PodProtectorStatus
}

export type PodProtectorSpec = ValueOf<typeof POD_PROTECTOR_SPEC_SCHEMA>
/** What overrides the settings of the process for one object. */
export type AdmissionHistoryConfig = NonNullable<PodProtectorSpec['admissionHistoryConfig']>
export type PodProtectorStatus = ValueOf<typeof POD_PROTECTOR_STATUS_SCHEMA>
/** A cell: the pods of one list and watch. */
export type CellStatus = PodProtectorStatus['cells'][number]
/** Counts of pods in a cell as the aggregator saw them. */
export type Aggregation = NonNullable<CellStatus['aggregation']>
/** One admitted deletion (podUID), or several merged into one bucket (endTime and counter). */
export type AdmissionBucket = NonNullable<NonNullable<CellStatus['admissionHistory']>['buckets']>[number]
export type StatusSummary = PodProtectorStatus['summary']
