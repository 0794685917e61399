// spec.autoscaler and status.autoscaler of an UpstreamCluster: the status that the cluster's cluster-autoscaler publishes. Added.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { AUTOSCALER_REPORT_SCHEMA, AUTOSCALER_SCHEMA } from './cluster-autoscaler-schema.ts'

/** If present, even empty, the cluster-autoscaler's status is followed. */
export type Autoscaler = ValueOf<typeof AUTOSCALER_SCHEMA>
/** The autoscaler's last report; conditions say whether it still holds. */
export type AutoscalerReport = ValueOf<typeof AUTOSCALER_REPORT_SCHEMA>
export type NodeGroupReport = NonNullable<AutoscalerReport['groups']>[number]
