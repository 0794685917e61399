// spec.members and spec.federation of an UpstreamCluster: other UpstreamClusters that are read as one. Added; KubeGateway has no equivalent.

import type { ValueOf } from '../../../../kit/api/json/json-schema.ts'
import type { FEDERATION_SCHEMA, MEMBERS_SCHEMA } from './federation-schema.ts'

export type FederationMembers = ValueOf<typeof MEMBERS_SCHEMA>
export type FederationMember = FederationMembers[number]
export type Federation = ValueOf<typeof FEDERATION_SCHEMA>

/** The UpstreamCluster that a member is. */
export function clusterOfMember({ name, cluster = '' }: Pick<FederationMember, 'name' | 'cluster'>): string {
  return cluster === '' ? name : cluster
}
