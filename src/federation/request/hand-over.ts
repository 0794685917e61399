// Hands a request for one object over to the member that has it, which then decides about it like any other cluster. What is decided here is only which
// member is meant, by which names, and who the caller is there.

import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type {
  CompiledCluster,
  CompiledFederatedResource,
  CompiledFederation,
  CompiledMember,
} from '../../gateway/core/cluster/compiled-cluster.ts'
import { splitNamespace } from '../../gateway/core/federation/names.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { targetInMember } from '../core/handed-over.ts'
import { userInMember } from '../core/mapped-user.ts'
import type { FederatedCollections } from '../state/federated-collections.ts'
import type { KnownRights } from '../state/known-rights.ts'
import { type AskedMember, askedMembers } from './asked-members.ts'
import { reachInMember } from './reach-versions.ts'
import { memberForbidden, notFederated, objectMissing, refuseDuplicate, unknownName } from './refusals.ts'

interface HandOverDeps {
  readonly kept: CachedCollections
  readonly collections: FederatedCollections
  readonly known: KnownRights
}

type Federated = CompiledCluster & { readonly federation: CompiledFederation }

/** Where an object is. */
interface Place {
  readonly member: CompiledMember
  /** As the member has it. */
  readonly namespace: string
}

const NAMESPACED = { isNamespaces: false, isNamespaced: true }

/** @returns undefined, or a promise of it = a member gets it */
export function handOver(
  decision: Decision,
  cluster: Federated,
  deps: HandOverDeps,
): Refusal | Promise<Refusal | undefined> | undefined {
  const { federation } = cluster
  const { info } = decision
  const entry = federation.resources.find(({ group, version, resource }) => {
    return resource === info.resource && group === info.apiGroup && version === info.apiVersion
  })
  if (entry === undefined) return notFederated(cluster, info.path)
  const asked = { namespace: info.namespace, name: info.name, fieldSelector: '' }
  const unknown = unknownName(federation, asked, NAMESPACED)
  if (unknown !== undefined) return unknown
  const split = federation.mode === 'merged' ? undefined : splitNamespace(info.namespace)
  const member = federation.members.find(({ name }) => name === split?.member)
  if (split !== undefined && member !== undefined && !split.hashed)
    return handTo(decision, { member, namespace: split.name })
  return findPlace(decision, cluster, entry, deps).then((place) => (isRefusal(place) ? place : handTo(decision, place)))
}

function handTo(decision: Decision, { member, namespace }: Place): Refusal | undefined {
  const { info, exchange, caller } = decision
  const user = userInMember(caller.user, member.trustsUsers)
  if (user === undefined) return memberForbidden(decision, member.name)
  const target = targetInMember(exchange.target, info, namespace)
  if (target === undefined) return objectMissing(decision)
  decision.handOver = { member: member.cluster, user, target }
  decision.filters.skipRest(decision)
  return undefined
}

/**
 * By what is kept of the members: which namespace a hash stands for, and with merged names which member has the object. Only for those who may read the
 * object, since an answer says what there is.
 */
async function findPlace(
  decision: Decision,
  { name: cluster, federation }: Federated,
  entry: CompiledFederatedResource,
  { kept, collections, known }: HandOverDeps,
): Promise<Place | Refusal> {
  const info: RequestInfo = { ...decision.info, verb: 'get', subresource: '' }
  const reading: Decision = { ...decision, info }
  const collection = collections.of(cluster, federation, entry)
  // For a moment, after they have changed.
  if (collection === undefined) return refuse('member-unavailable', 'the members are not known here yet')
  const asked = { namespace: info.namespace, name: info.name, fieldSelector: '', labelSelector: '' }
  const { monotonicMs } = decision.exchange
  const reach = (member: AskedMember, ms: number) => reachInMember(kept, member, { kind: 'proof' }, ms, monotonicMs)
  const found = await askedMembers(reading, { federation, collection, asked, resource: NAMESPACED, known, reach })
  if (isRefusal(found)) return found
  // A member that does not answer may have an object of this name, too.
  if (federation.mode === 'merged' && !entry.uniqueNames && !found.isWhole) {
    const [why = ''] = found.warnings
    return refuse('member-unavailable', `which member has ${info.resource} "${info.name}" is not known: ${why}`)
  }
  const places = found.members.flatMap(({ slot, scope, kept: objects }) => {
    const member = federation.members[slot]
    const isThere = member !== undefined && objects.get(scope.namespace, scope.name) !== undefined
    return isThere ? [{ slot, member, namespace: scope.namespace }] : []
  })
  const [one, second] = places
  if (one !== undefined && second !== undefined) return refuseDuplicate(info, federation, [one.slot, second.slot])
  return one ?? objectMissing(decision)
}
