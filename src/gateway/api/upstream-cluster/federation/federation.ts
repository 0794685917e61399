// spec.members and spec.federation of an UpstreamCluster: other UpstreamClusters that are read as one. Added; KubeGateway has no equivalent.

import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { type JsonObject, nameOf } from '../../../../kit/api/json/json-object.ts'
import {
  atMost,
  checked,
  defaultsTo,
  flag,
  list,
  object,
  oneOf,
  text,
  type ValueOf,
} from '../../../../kit/api/json/json-schema.ts'
import { type Loose, recordOf, recordsOf, textOf } from '../../../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable, shown } from '../../../../kit/api/validation/field-errors.ts'
import { isDnsName } from '../../../../kit/api/validation/name-syntax.ts'
import { MEMBER_NAME_RULES, MEMBERS_RULES, SIZES } from '../cel/cel-rules.ts'
import { checkResourceNames } from '../read-cache/read-cache.ts'
import { isMemberName, MAX_MEMBER_NAME, MEMBER_SEPARATOR } from './member-names.ts'

export const MEMBERS_SCHEMA = checked(
  atMost(
    SIZES.members,
    list(
      'Other UpstreamClusters that are read as one, used instead of servers: GET, LIST and WATCH of the resources in `federation` are answered from their ' +
        'read caches. The order matters, because a resourceVersion holds a version for each member: append new ones.',
      object(
        'A cluster that is read as a part of this one.',
        {
          name: checked(
            text(
              'Its name in object names and annotations: a DNS label of up to 32 characters, without two hyphens in a row.',
              { maxLength: MAX_MEMBER_NAME },
            ),
            MEMBER_NAME_RULES,
          ),
          cluster: text(
            'Name of the UpstreamCluster, which must have servers, and these resources in its spec.cache. Default: the name of the member.',
            {
              maxLength: SIZES.objectName,
            },
          ),
          trustUsers: defaultsTo(
            false,
            flag(
              'Whether the member trusts the users and groups of this cluster: the same names are the same people. If false, no request reaches it. ' +
                'ServiceAccounts, nodes and other users whose names begin with system: are never trusted.',
            ),
          ),
        },
        ['name'],
      ),
    ),
  ),
  MEMBERS_RULES,
)

export const FEDERATION_SCHEMA = object('How the members of spec.members are read.', {
  mode: defaultsTo(
    'prefixed',
    oneOf(
      'prefixed: objects are in namespace MEMBER--NAMESPACE, and cluster-scoped ones are called MEMBER--NAME. merged: names are unchanged, so two objects ' +
        'may have the same name.',
      ['prefixed', 'merged'],
    ),
  ),
  resources: atMost(
    SIZES.cachedResources,
    list(
      'Resources that can be read. Every member must have them in its spec.cache. Default: none.',
      object(
        'One resource.',
        {
          group: text('API group; the core group is the empty string. Default: the core group.', { maxLength: 253 }),
          version: text('Version of the API that clients use: v1.', { maxLength: 63 }),
          resource: text('Plural name in lower case, without a subresource: pods.', { maxLength: 253 }),
          uniqueNames: defaultsTo(
            false,
            flag(
              'With mode merged: asserts that no two members have an object of the same name, which watches require. The gateway does not verify it.',
            ),
          ),
        },
        ['version', 'resource'],
      ),
    ),
  ),
  partial: defaultsTo(
    'Refuse',
    oneOf(
      'The answer while a member has not been read yet. Refuse: 503. Omit: the objects of the other members, with a Warning. If a member is lost later, its ' +
        'last known objects are served.',
      ['Refuse', 'Omit'],
    ),
  ),
  denied: defaultsTo(
    'Refuse',
    oneOf(
      'The answer if the user may not read in a member. Refuse: 403. Omit: the objects of the other members, with a Warning.',
      ['Refuse', 'Omit'],
    ),
  ),
})

type FederationMembers = ValueOf<typeof MEMBERS_SCHEMA>
export type FederationMember = FederationMembers[number]
type Federation = ValueOf<typeof FEDERATION_SCHEMA>

/** The UpstreamCluster that a member is. */
export function clusterOfMember({ name, cluster = '' }: Pick<FederationMember, 'name' | 'cluster'>): string {
  return cluster === '' ? name : cluster
}

// Checks of spec.members and spec.federation that their schemas cannot express.

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

// Members are clusters with servers: one that has members itself would be read through two federations, or through itself.

/**
 * To refuse a write. What slips in is not read (condition MembersReady). Takes any objects.
 * @param others all other UpstreamClusters
 */
export function membersWithMembers(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[] {
  const members = membersOf(object)
  if (members.length === 0) return []
  const out = new FieldErrors()
  const own = nameOf(object)
  const places = new Map(members.map((cluster, index) => [cluster, index]))
  for (const other of others) {
    const ofOther = membersOf(other)
    if (ofOther.length === 0) continue
    const name = nameOf(other)
    const index = places.get(name)
    if (index !== undefined)
      out.invalid(`spec.members[${index}]`, `UpstreamCluster ${JSON.stringify(name)} has members itself`, 'name those')
    if (ofOther.includes(own))
      out.invalid(
        'spec.members',
        `UpstreamCluster ${JSON.stringify(name)} has this cluster as a member`,
        'remove it there first, or make another UpstreamCluster of these members',
      )
  }
  return reportable(out.found, out.more)
}

/** The names of their UpstreamClusters. */
function membersOf({ spec }: JsonObject): readonly string[] {
  return recordsOf(recordOf(spec)['members']).map(({ name, cluster }) =>
    clusterOfMember({ name: textOf(name), cluster: textOf(cluster) }),
  )
}
