// spec.podProtection of an UpstreamCluster: whether deletions of its pods are checked against PodProtectors, and how its pods are
// counted for them. Added; KubeGateway has nothing like it. Podseidon has these as flags of its processes for a cell.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { POD_PROTECTION_SCHEMA } from './cluster-protection-schema.ts'

/** Present, even when empty: deletions and evictions of pods are checked. */
export type PodProtection = ValueOf<typeof POD_PROTECTION_SCHEMA>
/** How the pods of the cell are counted. */
export type CellAggregation = NonNullable<PodProtection['aggregation']>
export type UpdateTrigger = NonNullable<CellAggregation['updateTrigger']>
