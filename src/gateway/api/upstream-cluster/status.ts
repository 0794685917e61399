// status of an UpstreamCluster, as reported by the gateways. The leader writes conditions and endpoints; every replica writes its own entry in
// `gateways`.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { UPSTREAM_CLUSTER_STATUS_SCHEMA } from './status-schema.ts'

export type UpstreamClusterStatus = ValueOf<typeof UPSTREAM_CLUSTER_STATUS_SCHEMA>
/** metav1.Condition. */
export type Condition = NonNullable<UpstreamClusterStatus['conditions']>[number]
/** Evidence of what a replica has put in force. */
export type GatewayStatus = NonNullable<UpstreamClusterStatus['gateways']>[number]
/** RFC 3339, rounded down to LAST_SEEN_STEP_MINUTES. */
export type ClientsSeen = NonNullable<GatewayStatus['lastSeen']>
/**
 * How a replica protects the pods of a cluster. `Judging`: it knows the PodProtectors. `Counting`: it also counts the pods of the cell. `Starting`:
 * not ready yet. `Broken`: it cannot, and `message` says why. In other states `message` says why it generates no PodProtectors.
 */
export type GatewayProtection = NonNullable<GatewayStatus['podProtection']>
/** A cached resource of one replica. */
export type CachedResourceStatus = NonNullable<GatewayStatus['cache']>[number]
/** The cached resources of all replicas. */
export type ReadCacheStatus = NonNullable<UpstreamClusterStatus['cache']>
/** The leader's view of an incident. */
export type DegradeStatus = NonNullable<UpstreamClusterStatus['degrade']>
/** A new leader continues from here. */
export type RecoveryStatus = NonNullable<DegradeStatus['recovery']>
export type RecoveryCheck = RecoveryStatus['checks'][number]
