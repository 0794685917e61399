// What commands mean by a federated cluster: its members, which are UpstreamClusters with servers. It has no pods, protection or autoscaler of its own, and
// shows namespaces of its members under other names.

import { clusterOfMember } from '../../gateway/api/upstream-cluster/federation/federation.ts'
import { listed } from '../../gateway/core/choice/choose-clusters.ts'
import { type NameMode, prefixedNamespace, splitNamespace } from '../../gateway/core/federation/names.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../kit/api/validation/nearest-name.ts'
import { printable } from '../../kit/core/text/printable.ts'

export interface ClusterMember {
  /** As namespaces begin. */
  readonly name: string
  /** The UpstreamCluster. */
  readonly cluster: string
}

export interface ClusterFederation {
  /** The federated cluster. */
  readonly name: string
  readonly mode: NameMode
  /** In the order of the object. Never empty. */
  readonly members: readonly ClusterMember[]
}

/** undefined = the cluster has servers. Names are as a terminal may show them: not every API server has checked them. */
export function federationOf(object: JsonObject): ClusterFederation | undefined {
  const { members, federation } = recordOf(object['spec'])
  const all = recordsOf(members).flatMap((member): readonly ClusterMember[] => {
    const name = printable(textOf(member['name']))
    const cluster = clusterOfMember({ name, cluster: printable(textOf(member['cluster'])) })
    return cluster === '' ? [] : [{ name, cluster }]
  })
  if (all.length === 0) return undefined
  const mode = recordOf(federation)['mode'] === 'merged' ? 'merged' : 'prefixed'
  return { name: nameOf(object), mode, members: all }
}

export interface MemberPlace {
  readonly member: ClusterMember
  /** As the member has it. */
  readonly namespace: string
}

/** Where a namespace of the federated cluster is. @throws {UserError} that says what members there are */
export function placeIn(federation: ClusterFederation, namespace: string): MemberPlace {
  const { name, mode, members } = federation
  const known = listed(members.map((member) => member.name))
  if (mode === 'merged') {
    const clusters = listed(members.map(({ cluster }) => cluster))
    const fix = `give --cluster with one of its members: ${clusters}`
    throw new UserError(
      `a namespace of ${name} does not say which member is meant: spec.federation.mode is merged`,
      fix,
    )
  }
  const split = splitNamespace(namespace)
  if (split === undefined) {
    const fix = `write -n MEMBER--${namespace}, with one of its members: ${known}`
    throw new UserError(`namespace ${JSON.stringify(namespace)} of ${name} names no member`, fix)
  }
  const member = members.find((one) => one.name === split.member)
  if (member === undefined) {
    const meant = nearestName(
      split.member,
      members.map((one) => one.name),
    )
    const hint = meant === '' ? '' : `did you mean ${meant}? `
    throw new UserError(`${name} has no member ${JSON.stringify(split.member)}`, `${hint}its members are ${known}`)
  }
  if (split.hashed) {
    const fix = `give --cluster ${member.cluster}, and with -n the name that it has there`
    throw new UserError(`namespace ${namespace} of ${name} stands for one with a longer name`, fix)
  }
  return { member, namespace: split.name }
}

/** What is to be known of a change of one cluster among `changed`; '' = nothing. */
export function membersNote(object: JsonObject, changed: Iterable<string>): string {
  const federation = federationOf(object)
  if (federation === undefined) return ''
  const all = new Set(changed)
  const others = federation.members.map(({ cluster }) => cluster).filter((cluster) => !all.has(cluster))
  if (others.length === 0) return ''
  const { name } = federation
  return `only requests to ${name} are meant, and its members are clusters of their own: ${listed(others)}`
}

/** What a namespace of a member is called in the federated cluster. */
export function namespaceShownIn({ mode }: ClusterFederation, member: ClusterMember, namespace: string): string {
  return mode === 'merged' ? namespace : prefixedNamespace(member.name, namespace)
}
