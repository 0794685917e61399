// spec.podProtection of an UpstreamCluster: whether deletions of its pods are checked against PodProtectors, and how its pods are
// counted for them. Added; KubeGateway has nothing like it. Podseidon has these as flags of its processes for a cell.

import type { ValueOf } from '../kube/json-schema.ts'
import type { POD_PROTECTION_SCHEMA } from './cluster-protection-schema.ts'

/** Present, even when empty: deletions and evictions of pods are checked. */
export type PodProtection = ValueOf<typeof POD_PROTECTION_SCHEMA>
/** Arrival: those that arrived last first, as of Podseidon. DeletionOrder: those first that a scale-down would delete first. */
export type AdmissionOrder = NonNullable<PodProtection['admissionOrder']>
export type GatherWindow = NonNullable<PodProtection['gather']>
export type VictimHints = NonNullable<PodProtection['hints']>
/** How the pods of the cell are counted. */
export type CellAggregation = NonNullable<PodProtection['aggregation']>
export type UpdateTrigger = NonNullable<CellAggregation['updateTrigger']>
