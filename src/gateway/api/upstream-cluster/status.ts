// status of an UpstreamCluster: what the gateways report. Conditions and endpoints are written by the leader among them,
// every replica writes its own entry of `gateways`.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { UPSTREAM_CLUSTER_STATUS_SCHEMA } from './status-schema.ts'

export type UpstreamClusterStatus = ValueOf<typeof UPSTREAM_CLUSTER_STATUS_SCHEMA>
/** metav1.Condition. */
export type Condition = NonNullable<UpstreamClusterStatus['conditions']>[number]
/** Proof of what a replica has put in force. */
export type GatewayStatus = NonNullable<UpstreamClusterStatus['gateways']>[number]
/** RFC 3339, rounded down to LAST_SEEN_STEP_MINUTES. */
export type ClientsSeen = NonNullable<GatewayStatus['lastSeen']>
/**
 * What a replica does to protect the pods of a cluster. `Judging`: it knows the PodProtectors. `Counting`: and it is the one that counts the pods
 * of the cell. `Starting`: it is about to. `Broken`: it cannot, and `message` says why. With another state `message` says why it generates
 * no PodProtectors.
 */
export type GatewayProtection = NonNullable<GatewayStatus['podProtection']>
/** What the leader sees of an incident. */
export type DegradeStatus = NonNullable<UpstreamClusterStatus['degrade']>
/** A leader that takes over goes on from here. */
export type RecoveryStatus = NonNullable<DegradeStatus['recovery']>
export type RecoveryCheck = RecoveryStatus['checks'][number]
