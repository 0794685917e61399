// spec.members and spec.federation with their defaults.

import { complete, fieldOf, itemOf, type Schema } from '../../../kit/api/json/json-schema.ts'
import { clusterOfMember } from '../../api/upstream-cluster/federation/federation.ts'
import type { UpstreamClusterSpec } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { CompiledFederation } from './compiled-cluster.ts'

/** undefined = the cluster has servers of its own. */
export function compileFederation(
  { members = [], federation }: UpstreamClusterSpec,
  schema: Schema<UpstreamClusterSpec>,
): CompiledFederation | undefined {
  if (members.length === 0) return undefined
  const ofFederation = fieldOf(schema, 'federation')
  const resource = itemOf(fieldOf(ofFederation, 'resources'))
  const { mode, partial, denied, resources = [] } = complete(ofFederation, federation ?? {})
  return {
    members: members.map((member) => ({
      name: member.name,
      cluster: clusterOfMember(member),
      trustsUsers: complete(itemOf(fieldOf(schema, 'members')), member).trustUsers,
    })),
    mode,
    resources: resources.map((one) => complete(resource, one)),
    omitsUnread: partial === 'Omit',
    omitsDenied: denied === 'Omit',
  }
}
