// What the gateway would decide about a request, without serving it: the same steps and the same filters, as far as configuration and
// the limits that the caller brings decide. `explain` asks it about one request, `replay` about all of an access log.

import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { isRefusal, type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { ANONYMOUS_USER } from '../../../kube/api/user.ts'
import { CLUSTER_API_GROUP, scaleTargetOf } from '../../../scaling/core/scale-write/scale-target.ts'
import type { ListRequest } from '../../api/list-request.ts'
import { guardedDisruption, refuseDisruption } from '../admission/disruption.ts'
import type { Admission, Filter, Moment } from '../admission/filter.ts'
import type { Held } from '../admission/held.ts'
import { listGuard } from '../admission/list-guard.ts'
import { type AskingFilter, type FilterSet, PURE_FILTERS } from '../admission/order.ts'
import { Pipeline } from '../admission/pipeline.ts'
import { isPodWrite, protectionOf } from '../admission/pod-deletion.ts'
import { scaleProtectionOf } from '../admission/scale-write.ts'
import {
  policyOf,
  readRequestInfo,
  refuseLongTarget,
  refuseRevoked,
  refuseUnauthorized,
  selectPolicy,
} from '../admission/steps.ts'
import { type ClusterIndex, normalizeHost } from '../cluster/cluster-index.ts'
import type { CompiledCluster, CompiledPolicy } from '../cluster/compiled-cluster.ts'
import { type LookupKey, lookupCluster } from '../cluster/lookup-cluster.ts'
import type { Revocable } from '../cluster/revocation.ts'
import { assumeUser } from '../identity/assume-user.ts'
import { identityProblem } from '../identity/impersonate.ts'
import type { Limits } from '../limits/limits.ts'
import { listRequestOf } from '../list-cost/list-request.ts'
import { ListSizes } from '../list-cost/list-sizes.ts'
import { isDryRunQuery } from '../policy/disruption.ts'
import { checkList, isExemptFromGuard } from '../policy/list-guard.ts'
import type { PolicyMatch } from '../policy/match-index.ts'
import { unknownClusterMessage } from '../policy/policy-messages.ts'
import { noEndpointMessage } from '../policy/traffic-messages.ts'
import { isWatch } from '../request/long-running.ts'
import { readRequestHead } from '../request/request-head.ts'
import type { RequestInfo } from '../request/request-info.ts'

export interface EvaluationInput {
  /** As in Host; its address and port also stand for where the connection arrived, if that is not given. */
  host?: string
  method: string
  /** The raw request target. */
  target: string
  /** Absent or '': anonymous. */
  user?: string
  /** Default: those that Kubernetes gives the user by its kind. */
  groups?: readonly string[]
  /** Who sent the request, where it runs as another user (kubectl --as). Default: the user. */
  impersonator?: string
  userAgent?: string
  /** The client's address, for access lists. */
  remoteAddress?: string
  /** Where the connection arrived. */
  localAddress?: string
  localPort?: number
}

/** Who else is asked about the request, and is not known here. */
export interface AlsoAsked {
  readonly filter: AskingFilter | 'list-guard'
  /** It refuses nothing. */
  readonly shadow: boolean
  /** For people. */
  readonly text: string
}

export interface Evaluation {
  /** undefined = the target cannot be parsed. */
  info: RequestInfo | undefined
  cluster: CompiledCluster | undefined
  matched: PolicyMatch | undefined
  policy: CompiledPolicy | undefined
  /** undefined = it is forwarded, as far as is known here. */
  refusal: Refusal | undefined
  /** What filters in shadow mode would have said. */
  warnings: readonly string[]
  /** `filter/rule` of the same. */
  shadow: readonly string[]
  alsoAsked: readonly AlsoAsked[]
  /** What flow control took, to be given back when the request is over; also set where a later filter refuses. */
  held: Held | undefined
}

/** `limits`: of a cluster. `moment`: the wall clock for the expiry of a degrade mode, the monotonic one for rates. */
export interface EvaluationContext {
  readonly index: ClusterIndex
  /** How large lists of a cluster are, where somebody knows. Default: nobody does. */
  readonly lists?: (cluster: string) => ListSizes | undefined
  readonly limits: (cluster: CompiledCluster) => Limits
  readonly moment: Moment
}

export function evaluateRequest(input: EvaluationInput, context: EvaluationContext): Evaluation {
  const { index, limits, moment, lists } = context
  const found = emptyEvaluation()
  const { method, target, host = '' } = input
  const { problem } = readRequestHead([':method', method, ':path', target, ':authority', host], '', true)
  if (problem !== '') return refused(found, refuse('bad-request', problem))
  const tooLong = refuseLongTarget(target)
  if (tooLong !== undefined) return refused(found, tooLong)
  const route = lookupCluster(index, lookupKey(input))
  const info = readRequestInfo(method, 'unknown' in route ? target : route.target)
  if (!isRefusal(info)) found.info = info
  if ('unknown' in route) return refused(found, refuse('unknown-cluster', unknownClusterMessage(route.unknown)))
  const { cluster } = route
  found.cluster = cluster
  if (isRefusal(info)) return refused(found, info)

  const user = assumeUser(input.user ?? '', input.groups)
  const isAnonymous = user.name === ANONYMOUS_USER
  const isUnknown = (isAnonymous && !cluster.authentication.anonymous) || identityProblem(user) !== ''
  if (isUnknown) return refused(found, refuseUnauthorized())
  const revoked = refuseRevoked(cluster.authentication.revoked, requesterOf(input, user.name, isAnonymous))
  if (revoked !== undefined) return refused(found, revoked)
  const userAgent = input.userAgent ?? ''
  const matched = selectPolicy(cluster, info, user, userAgent)
  if (isRefusal(matched)) return refused(found, matched)
  const policy = policyOf(cluster, matched)
  found.matched = matched
  found.policy = policy
  return admit(found, {
    cluster,
    limits: limits(cluster),
    policy,
    rule: matched.rule,
    info,
    user,
    userAgent,
    remoteAddress: input.remoteAddress ?? '',
    isWatch: isWatch(info),
    isUpgrade: false,
    list: cluster.learnsLists ? listRequest(info, route.target, lists?.(cluster.name)) : undefined,
    moment,
    passed: 0,
    reserved: false,
    held: undefined,
    warnings: [],
    shadow: [],
    target: route.target,
    alsoAsked: [],
  })
}

/** With a copy of what is known: nothing changes because somebody asks. */
function listRequest(info: RequestInfo, target: string, lists: ListSizes = new ListSizes()): ListRequest | undefined {
  const list = listRequestOf(info, target, lists)
  return list?.size === undefined ? list : { ...list, shape: list.shape, size: { ...list.size } }
}

/** Which credential it would be is not known here: only names count. */
function requesterOf({ impersonator = '' }: EvaluationInput, user: string, isAnonymous: boolean): Revocable {
  const name = impersonator === '' ? user : impersonator
  return { user: { name }, kind: isAnonymous ? 'anonymous' : 'token', hashes: [] }
}

/** URLs that may serve: of the policy's subset, enabled, with a weight. */
export function servingEndpoints(cluster: CompiledCluster, policy: CompiledPolicy): string[] {
  const urls: string[] = []
  for (const at of policy.endpoints) {
    const endpoint = cluster.endpoints[at]
    if (endpoint !== undefined && !endpoint.disabled && endpoint.weight > 0) urls.push(endpoint.url)
  }
  return urls
}

interface EvaluatedAdmission extends Admission {
  /** The raw request target. */
  readonly target: string
  readonly alsoAsked: AlsoAsked[]
}

/** How large the list is may not be known here. */
const explainedListGuard: Filter<EvaluatedAdmission> = {
  shadow: listGuard.shadow,
  check(admission) {
    const { list, cluster, info, user, userAgent, alsoAsked } = admission
    const guard = cluster.listGuard
    const isUnknown = guard !== undefined && list !== undefined && checkList(guard, list) === 'unknown'
    if (isUnknown && !isExemptFromGuard(cluster, info, user, userAgent)) {
      const { shadow, maxBytesUnlimited } = guard
      const does = shadow ? 'warns about it' : 'refuses it'
      const text = `listGuard ${does} when the list is known to be larger than ${maxBytesUnlimited} bytes`
      alsoAsked.push({ filter: 'list-guard', shadow, text })
    }
    return listGuard.check(admission)
  },
}

/** The body and the rate are not known here; without a body, a removal is not a dry run. */
const disruption: Filter<EvaluatedAdmission> = {
  shadow: ({ cluster }) => cluster.degrade.shadow,
  check(admission) {
    const found = guardedDisruption(admission)
    if (found === undefined) return undefined
    const { cluster, alsoAsked, target } = admission
    const { mode, shadow } = cluster.degrade
    const ask = (text: string): void => void alsoAsked.push({ filter: 'disruption', shadow, text })
    const isDryRun = isDryRunQuery(target)
    if (found === 'removal' && !isDryRun) {
      if (mode === 'NoDisruption') return refuseDisruption(admission, '')
      ask(`degrade mode ${mode} decides by its rate`)
    } else if (found === 'removal') {
      ask(`degrade mode ${mode} decides by the body: whether that says dryRun, too`)
    } else if (!isDryRun) {
      const what = found === 'replicas' ? 'lowers spec.replicas' : 'ends pods'
      ask(`degrade mode ${mode} decides by the body: whether it ${what}`)
    }
    return undefined
  },
}

/** PodProtectors are not known here, so that nothing but their being asked can be told. */
const protection: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ cluster, info, alsoAsked }) {
    const asked = protectionOf(cluster, info)
    if (asked === undefined) return undefined
    const { cell, shadow } = asked
    const when = isPodWrite(info) ? 'if it sets or lowers activeDeadlineSeconds, ' : ''
    const text = `${when}PodProtectors are asked (cell ${cell}${shadow ? ', shadow mode: they refuse nothing' : ''})`
    alsoAsked.push({ filter: 'protection', shadow, text })
    return undefined
  },
}

/** ScaleDownPolicies are not known here, and refuse only where they say so. */
const scaleDownPolicy: Filter<EvaluatedAdmission> = { shadow: () => false, check: () => undefined }

/** ScaleUpGuards are not known here either. */
const scaleUpGuard: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ info, alsoAsked }) {
    if (!isGroupWrite(info)) return undefined
    const text = 'ScaleUpGuards are asked whether the group is backed off'
    alsoAsked.push({ filter: 'scale-up-guard', shadow: false, text })
    return undefined
  },
}

/** Neither the body nor the pods are known here. */
const scaleProtection: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ cluster, info, user, alsoAsked }) {
    const asked = scaleProtectionOf(cluster, info, user.name)
    if (asked === undefined) return undefined
    const { shadow } = asked
    const how = shadow ? ' (shadow mode: they refuse nothing)' : ''
    const text = `if it lowers the replicas, PodProtectors are asked about the pods that go${how}`
    alsoAsked.push({ filter: 'scale-protection', shadow, text })
    return undefined
  },
}

function isGroupWrite(info: RequestInfo): boolean {
  const target = scaleTargetOf(info)
  return target !== undefined && target.apiGroup === CLUSTER_API_GROUP
}

const SET: FilterSet<EvaluatedAdmission> = {
  ...PURE_FILTERS,
  'list-guard': explainedListGuard,
  disruption,
  'scale-up-guard': scaleUpGuard,
  protection,
  'scale-protection': scaleProtection,
  'scale-down-policy': scaleDownPolicy,
}
const FILTERS = new Pipeline<EvaluatedAdmission>(SET)

/** The filters, then whether there is an endpoint. */
function admit(found: Evaluation, admission: EvaluatedAdmission): Evaluation {
  const permit = FILTERS.run(admission)
  const { cluster, policy, warnings, shadow, alsoAsked, held } = admission
  found.warnings = warnings
  found.shadow = shadow
  found.alsoAsked = alsoAsked
  found.held = held
  if (isRefusal(permit)) return refused(found, permit)
  const hasEndpoint = policy.endpoints.length > 0 && servingEndpoints(cluster, policy).length > 0
  return hasEndpoint ? found : refused(found, refuse('no-endpoint', noEndpointMessage(cluster.name)))
}

/** Where no address is given, an address or a port in the host says where the connection would have arrived. */
function lookupKey({ host = '', target, localAddress = '', localPort = 0 }: EvaluationInput): LookupKey {
  const address = localAddress === '' ? (canonicalIp(normalizeHost(host)) ?? '') : localAddress
  const port = /(?:^\[[^\]]*\]|^[^:]*):(\d{1,5})$/.exec(host)?.[1]
  const portOfHost = port === undefined ? 0 : Number(port)
  return { authority: host, target, localAddress: address, localPort: localPort === 0 ? portOfHost : localPort }
}

function emptyEvaluation(): Evaluation {
  return {
    info: undefined,
    cluster: undefined,
    matched: undefined,
    policy: undefined,
    refusal: undefined,
    warnings: [],
    shadow: [],
    alsoAsked: [],
    held: undefined,
  }
}

function refused(found: Evaluation, refusal: Refusal): Evaluation {
  found.refusal = refusal
  return found
}
