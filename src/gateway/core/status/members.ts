// Whether the members of a federated cluster can be read: condition MembersReady, and what condition Ready says in the place of endpoints.

import type { CachedResourceInForce } from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { Condition } from '../../api/upstream-cluster/status.ts'
import type {
  CompiledCluster,
  CompiledFederatedResource,
  CompiledFederation,
  CompiledMember,
} from '../cluster/compiled-cluster.ts'
import { joinedMessages } from './messages.ts'

/** Worst first. In Stale and Ready, its objects are answered. */
export const MEMBER_STATES = [
  /** No such UpstreamCluster is in force. */
  'MemberMissing',
  /** It has members itself. */
  'MemberFederated',
  /** Its spec.cache lacks what is federated. */
  'NotCached',
  /** Its read cache has not read it, or gave it up. */
  'NotRead',
  /** It cannot be followed: its objects are served as they were last known. */
  'Stale',
  'Ready',
] as const

export type MemberState = (typeof MEMBER_STATES)[number]

export interface MemberFact {
  readonly member: string
  readonly state: MemberState
  /** It is being read for the first time: nothing is wrong. */
  readonly loading: boolean
  /** What is wrong, and what to do; '' = nothing. */
  readonly message: string
}

export interface MembersFact {
  readonly members: readonly MemberFact[]
  /** Reads are answered without members that cannot be. */
  readonly omitsUnread: boolean
}

/** What is in force of other clusters. */
export interface OtherClusters {
  get(cluster: string): Pick<CompiledCluster, 'cache' | 'federation'> | undefined
  /** What this replica keeps of it. */
  cached(cluster: string): readonly CachedResourceInForce[]
}

export function membersFact(
  { members, resources, omitsUnread }: CompiledFederation,
  others: OtherClusters,
): MembersFact {
  return { members: members.map((member) => memberFact(member, resources, others)), omitsUnread }
}

/** Whether reads are answered: of all members, or of some if the others may be left out. */
export function answersReads({ members, omitsUnread }: MembersFact): boolean {
  const answered = members.filter(isAnswered).length
  return omitsUnread ? answered > 0 : answered === members.length
}

export function isAnswered({ state }: MemberFact): boolean {
  return state === 'Ready' || state === 'Stale'
}

export function membersVerdict({ members }: MembersFact): Pick<Condition, 'status' | 'reason' | 'message'> {
  const bad = members.filter(({ state }) => state !== 'Ready').toSorted((a, b) => rankOf(a) - rankOf(b))
  const message = memberMessages(bad)
  const worst = bad.find(({ loading }) => !loading)
  if (worst !== undefined) return { status: 'False', reason: worst.state, message }
  if (bad.length > 0) return { status: 'Unknown', reason: 'Loading', message }
  return {
    status: 'True',
    reason: 'Ready',
    message: `objects of ${members.map(({ member }) => member).join(', ')} are answered`,
  }
}

export function memberMessages(members: readonly MemberFact[]): string {
  return joinedMessages(members.map(({ member, message }) => `${member}: ${message}`))
}

function rankOf({ state }: MemberFact): number {
  return MEMBER_STATES.indexOf(state)
}

function memberFact(
  { name: member, cluster }: CompiledMember,
  resources: readonly CompiledFederatedResource[],
  others: OtherClusters,
): MemberFact {
  const fact = (state: MemberState, message: string, loading = false): MemberFact => ({
    member,
    state,
    loading,
    message,
  })
  const other = others.get(cluster)
  if (other === undefined)
    return fact(
      'MemberMissing',
      `no UpstreamCluster "${cluster}" is in force; create it, or name another in spec.members`,
    )
  if (other.federation !== undefined)
    return fact('MemberFederated', `UpstreamCluster "${cluster}" has members itself; name those in spec.members`)
  const lacking = resources.flatMap((resource) => whyNotCached(resource, other.cache ?? []))
  if (lacking.length > 0) return fact('NotCached', `in UpstreamCluster "${cluster}" ${lacking.join('; ')}`)
  const kept = others.cached(cluster)
  const notServing = resources.flatMap((resource) => {
    const label = labelOf(resource)
    const known = kept.find((one) => one.resource === label && one.version === resource.version)
    const { state, message } = known ?? NOT_READ_YET
    return state === 'Serving' ? [] : [{ resource: label, state, message }]
  })
  const unread = notServing.filter(({ state }) => state !== 'Stale')
  if (unread.length > 0) {
    const isLoading = unread.every(({ state }) => state === 'Loading')
    return fact('NotRead', unread.map(whyNotRead).join('; '), isLoading)
  }
  if (notServing.length === 0) return fact('Ready', '')
  const lost = notServing.map(({ resource }) => resource).join(', ')
  return fact('Stale', `cannot be followed; ${lost} are served as they were last known`)
}

const NOT_READ_YET: Pick<CachedResourceInForce, 'state' | 'message'> = { state: 'Loading', message: '' }

function whyNotRead({ resource, message }: Pick<CachedResourceInForce, 'resource' | 'message'>): string {
  return message === '' ? `${resource} are being read` : `${resource}: ${message}`
}

function whyNotCached(
  resource: CompiledFederatedResource,
  cache: NonNullable<CompiledCluster['cache']>,
): readonly string[] {
  const label = labelOf(resource)
  const entry = cache.find(({ group, version, resource: plural }) => {
    return group === resource.group && version === resource.version && plural === resource.resource
  })
  if (entry === undefined) return [`spec.cache lacks ${label} of version ${resource.version}; add it`]
  if (entry.namespaces.some((namespace) => namespace !== ''))
    return [`spec.cache has only some namespaces of ${label}; remove namespaces there`]
  if (!entry.encodings.includes('json')) return [`spec.cache has ${label} without the encoding JSON; add it`]
  return []
}

function labelOf({ group, resource }: Pick<CompiledFederatedResource, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`
}
