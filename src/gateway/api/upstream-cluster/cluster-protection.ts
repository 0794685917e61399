// spec.podProtection of an UpstreamCluster: whether pod deletions are checked against PodProtectors, and how pods are counted for them. Added;
// KubeGateway has no equivalent. In Podseidon these are flags of the processes of a cell.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { POD_PROTECTION_SCHEMA } from './cluster-protection-schema.ts'

/** If present, even empty, deletions and evictions of pods are checked. */
export type PodProtection = ValueOf<typeof POD_PROTECTION_SCHEMA>
/** How the cell's pods are counted. */
export type CellAggregation = NonNullable<PodProtection['aggregation']>
export type UpdateTriggerSettings = NonNullable<CellAggregation['updateTrigger']>
