// spec.autoscaler and status.autoscaler of an UpstreamCluster: what the cluster-autoscaler of the cluster writes of itself. Added.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { AUTOSCALER_REPORT_SCHEMA, AUTOSCALER_SCHEMA } from './cluster-autoscaler-schema.ts'

/** Present, even when empty: the status of the cluster-autoscaler is followed. */
export type Autoscaler = ValueOf<typeof AUTOSCALER_SCHEMA>
/** The autoscaler as it was written last; conditions say whether that is still true. */
export type AutoscalerReport = ValueOf<typeof AUTOSCALER_REPORT_SCHEMA>
export type NodeGroupReport = NonNullable<AutoscalerReport['groups']>[number]
