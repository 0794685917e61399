// Hands a request for one object over to the member that has it, which then decides about it like any other cluster. What is decided here is only which
// member is meant, by which names, and who the caller is there.

import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type {
  CompiledCluster,
  CompiledFederatedResource,
  CompiledFederation,
  CompiledMember,
} from '../../gateway/core/cluster/compiled-cluster.ts'
import { splitName, splitNamespace } from '../../gateway/core/federation/names.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { targetInMember } from '../core/handed-over.ts'
import { userInMember } from '../core/mapped-user.ts'
import type { AskedScope, NamedResource } from '../core/member-scope.ts'
import type { FederatedCollections } from '../state/federated-collections.ts'
import type { KnownRights } from '../state/known-rights.ts'
import { type AskedMember, askedMembers } from './asked-members.ts'
import { reachInMember } from './reach-versions.ts'
import { memberForbidden, notFederated, objectMissing, refuseDuplicate, unknownName } from './refusals.ts'

export interface HandOverDeps {
  readonly kept: CachedCollections
  readonly collections: FederatedCollections
  readonly known: KnownRights
}

export type FederatedUpstream = CompiledCluster & { readonly federation: CompiledFederation }

/** Where an object is. */
export interface HandOverPlace {
  readonly member: CompiledMember
  readonly slot: number
  /** As the member has them. */
  readonly namespace: string
  /** '' = that of a collection. */
  readonly name: string
}

const NAMESPACED: NamedResource = { isNamespaces: false, isNamespaced: true }

/** A log or a session of a pod. @returns undefined, or a promise of it = a member gets it */
export function handOver(
  decision: Decision,
  cluster: FederatedUpstream,
  deps: HandOverDeps,
): Refusal | Promise<Refusal | undefined> | undefined {
  const { info } = decision
  const entry = federatedEntry(cluster.federation, info)
  if (entry === undefined) return notFederated(cluster, info.path)
  const place = placeOf(decision, cluster, entry, NAMESPACED, deps)
  if (!(place instanceof Promise)) return isRefusal(place) ? place : handTo(decision, place)
  return place.then((found) => (isRefusal(found) ? found : handTo(decision, found)))
}

/** What a member says of its API is that of all: of the first one that answers. */
export function handOverDescription(
  decision: Decision,
  { federation: { members } }: FederatedUpstream,
): Refusal | undefined {
  const { exchange, caller } = decision
  const isReady = ({ cluster }: CompiledMember): boolean =>
    exchange.gw.clusters.get(cluster)?.endpoints.all.some(({ health }) => health.state === 'healthy') === true
  const trusting = members.filter(({ trustsUsers }) => userInMember(caller.user, trustsUsers) !== undefined)
  const member = trusting.find(isReady) ?? trusting[0]
  const user = member && userInMember(caller.user, member.trustsUsers)
  if (member === undefined || user === undefined)
    return memberForbidden(decision, members.map(({ name }) => name).join(', '))
  decision.handOver = { member: member.cluster, user, target: exchange.target }
  decision.filters.skipRest(decision)
  return undefined
}

export function federatedEntry(
  { resources }: CompiledFederation,
  info: RequestInfo,
): CompiledFederatedResource | undefined {
  return resources.find(({ group, version, resource }) => {
    return resource === info.resource && group === info.apiGroup && version === info.apiVersion
  })
}

/** Where what the path names is. A promise: the name does not say it. */
export function placeOf(
  decision: Decision,
  cluster: FederatedUpstream,
  entry: CompiledFederatedResource,
  resource: NamedResource,
  deps: HandOverDeps,
): HandOverPlace | Refusal | Promise<HandOverPlace | Refusal> {
  const { federation } = cluster
  const asked = scopeOf(decision.info, resource)
  const unknown = unknownName(federation, asked, resource)
  if (unknown !== undefined) return unknown
  if (federation.mode === 'merged') return findPlace(decision, cluster, entry, resource, deps)
  const { isNamespaces, isNamespaced } = resource
  const split = isNamespaced ? splitNamespace(asked.namespace) : (isNamespaces ? splitNamespace : splitName)(asked.name)
  const slot = federation.members.findIndex(({ name }) => name === split?.member)
  const member = federation.members[slot]
  if (split === undefined || member === undefined) return objectMissing(decision)
  if (split.hashed) return findPlace(decision, cluster, entry, resource, deps)
  const { name } = asked
  return isNamespaced
    ? { member, slot, namespace: split.name, name }
    : { member, slot, namespace: isNamespaces ? split.name : '', name: split.name }
}

function handTo(decision: Decision, { member, namespace }: HandOverPlace): Refusal | undefined {
  const { info, exchange, caller } = decision
  const user = userInMember(caller.user, member.trustsUsers)
  if (user === undefined) return memberForbidden(decision, member.name)
  const target = targetInMember(exchange.target, info, namespace)
  if (target === undefined) return objectMissing(decision)
  decision.handOver = { member: member.cluster, user, target }
  decision.filters.skipRest(decision)
  return undefined
}

function scopeOf({ namespace, name }: RequestInfo, { isNamespaces }: NamedResource): AskedScope {
  return { namespace: isNamespaces ? '' : namespace, name, fieldSelector: '' }
}

/**
 * By what is kept of the members: which namespace a hash stands for, and with merged names which member has the object. Only for those who may read the
 * object, since an answer says what there is.
 */
async function findPlace(
  decision: Decision,
  { name: cluster, federation }: FederatedUpstream,
  entry: CompiledFederatedResource,
  resource: NamedResource,
  { kept, collections, known }: HandOverDeps,
): Promise<HandOverPlace | Refusal> {
  const info: RequestInfo = { ...decision.info, verb: 'get', subresource: '' }
  const reading: Decision = { ...decision, info }
  const collection = collections.of(cluster, federation, entry)
  // For a moment, after they have changed.
  if (collection === undefined) return refuse('member-unavailable', 'the members are not known yet')
  const asked = { ...scopeOf(info, resource), labelSelector: '' }
  const { monotonicMs } = decision.exchange
  const reach = (member: AskedMember, ms: number) => reachInMember(kept, member, { kind: 'proof' }, ms, monotonicMs)
  const found = await askedMembers(reading, { federation, collection, asked, resource, known, reach })
  if (isRefusal(found)) return found
  // A member that does not answer may have an object of this name, too.
  if (federation.mode === 'merged' && !entry.uniqueNames && !found.isWhole) {
    const [why = ''] = found.warnings
    return refuse('member-unavailable', `which member has ${info.resource} "${info.name}" is not known: ${why}`)
  }
  const places = found.members.flatMap(({ slot, scope, kept: objects }) => {
    const member = federation.members[slot]
    const isThere = member !== undefined && objects.get(scope.namespace, scope.name) !== undefined
    return isThere
      ? [{ slot, member, namespace: resource.isNamespaces ? scope.name : scope.namespace, name: scope.name }]
      : []
  })
  const [one, second] = places
  if (one !== undefined && second !== undefined) return refuseDuplicate(info, federation, [one.slot, second.slot])
  return one ?? objectMissing(decision)
}
