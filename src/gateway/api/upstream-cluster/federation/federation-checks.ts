// Checks of spec.members and spec.federation that their schemas cannot express.

import type { Loose } from '../../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../../kit/api/validation/field-errors.ts'
import { isDnsName } from '../../../../kit/api/validation/name-syntax.ts'
import { checkResourceNames } from '../read-cache/read-cache-checks.ts'
import type { Federation, FederationMembers } from './federation.ts'
import { isMemberName, MAX_MEMBER_NAME, MEMBER_SEPARATOR } from './member-names.ts'

const MEMBERS = 'spec.members'
const FEDERATION = 'spec.federation'

/** Fields that are for connections to servers, or for what is written to them. */
const FOR_SERVERS = [
  'followEndpointSlice',
  'clientConfig',
  'healthCheck',
  'listGuard',
  'podProtection',
  'autoscaler',
  'scaleProtection',
  'controllerManager',
  'cache',
] as const

/** What is looked at of the spec of an UpstreamCluster. */
type FederatedSpec = Readonly<Partial<Record<(typeof FOR_SERVERS)[number], unknown>>> & {
  readonly members?: Loose<FederationMembers> | undefined
  readonly federation?: Loose<Federation> | undefined
  readonly servers?: readonly unknown[] | undefined
}

/** @param own name of the object */
export function checkFederation(spec: FederatedSpec, own: string, out: FieldErrors): void {
  const { members = [], federation, servers = [] } = spec
  if (members.length === 0) {
    if (federation !== undefined)
      out.required(
        MEMBERS,
        'is required when federation is set',
        'name the clusters that are read as one, or remove spec.federation',
      )
    return
  }
  if (servers.length > 0)
    out.forbidden(
      'spec.servers',
      'may not be specified with members',
      'make an UpstreamCluster of the servers, and name it in spec.members',
    )
  for (const field of FOR_SERVERS) {
    const value = spec[field]
    if (value === undefined || value === false) continue
    out.warning(`spec.${field}`, 'has no effect with members', 'set it in the UpstreamClusters that are members')
  }
  checkMembers(members, own, out)
  checkFederated(federation ?? {}, out)
}

function checkMembers(members: Loose<FederationMembers>, own: string, out: FieldErrors): void {
  const names = new Map<string, number>()
  const clusters = new Map<string, number>()
  for (const [index, member] of members.entries()) {
    const { name, cluster = '', trustUsers = false } = member ?? {}
    if (name === undefined) continue
    const at = `${MEMBERS}[${index}]`
    if (!trustUsers)
      out.warning(
        `${at}.trustUsers`,
        'is not set: no user may read there',
        'set it if its users and groups are the same people as those of this cluster',
      )
    if (!isMemberName(name)) {
      out.invalid(`${at}.name`, `${shown(name)} is not a valid name of a member: ${whyNot(name)}`, fixOf(cluster))
      continue
    }
    const clusterPath = cluster === '' ? `${at}.name` : `${at}.cluster`
    const ofMember = cluster === '' ? name : cluster
    const sameName = names.get(name)
    const sameCluster = clusters.get(ofMember)
    names.set(name, sameName ?? index)
    clusters.set(ofMember, sameCluster ?? index)
    if (sameName !== undefined)
      out.duplicate(
        `${at}.name`,
        `is the name of ${MEMBERS}[${sameName}] too`,
        'give one of the two another name, or remove it',
      )
    else if (ofMember === own) out.invalid(clusterPath, 'is this cluster itself', 'name a cluster that has servers')
    else if (!isDnsName(ofMember))
      out.invalid(clusterPath, `${shown(ofMember)} is not the name of an UpstreamCluster`, 'write its metadata.name')
    else if (sameCluster !== undefined)
      out.duplicate(
        clusterPath,
        `is the same cluster as ${MEMBERS}[${sameCluster}]`,
        'remove one of the two: its objects would be there twice',
      )
  }
}

function whyNot(name: string): string {
  if (name.includes(MEMBER_SEPARATOR)) return `${MEMBER_SEPARATOR} separates it from the namespaces of its objects`
  if (name.length > MAX_MEMBER_NAME)
    return `it stands in front of namespaces, which have 63 characters together with it`
  return 'it is a part of namespaces'
}

function fixOf(cluster: string): string {
  const rule = `write up to ${MAX_MEMBER_NAME} lower-case letters, digits and -, without two hyphens in a row`
  return cluster === '' ? `${rule}, and the name of the UpstreamCluster as cluster` : rule
}

function checkFederated({ mode, resources = [] }: Loose<Federation>, out: FieldErrors): void {
  if (resources.length === 0)
    out.warning(
      `${FEDERATION}.resources`,
      'names no resource: every read is answered with 404',
      'name resources: version v1, resource pods',
    )
  const seen = new Map<string, number>()
  for (const [index, resource] of resources.entries()) {
    if (resource === undefined) continue
    const at = `${FEDERATION}.resources[${index}]`
    checkResourceNames(resource, at, out)
    if (resource.uniqueNames === true && mode !== 'merged')
      out.warning(
        `${at}.uniqueNames`,
        'has no effect without mode merged: prefixed names are always unique',
        'remove it',
      )
    const key = JSON.stringify([resource.group ?? '', resource.version, resource.resource])
    const before = seen.get(key)
    if (before === undefined) seen.set(key, index)
    else out.duplicate(at, `is the same resource as ${FEDERATION}.resources[${before}]`, 'remove one of the two')
  }
}
