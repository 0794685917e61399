// Decides about a request without serving it: the same steps and filters, as far as configuration and the given limits decide. `explain`
// evaluates one request, `replay` all of an access log.

import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { isRefusal, type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { ANONYMOUS_USER } from '../../../kube/api/user.ts'
import type { ListRequest } from '../../api/list-request.ts'
import { guardedDisruption, refuseDisruption } from '../admission/disruption.ts'
import type { Admission, Filter, Moment } from '../admission/filter.ts'
import type { Held } from '../admission/held.ts'
import { type AskingFilter, type FilterName, PURE_FILTERS } from '../admission/order.ts'
import { Pipeline } from '../admission/pipeline.ts'
import { isPodWrite, protectionOf } from '../admission/pod-deletion.ts'
import { listGuard } from '../admission/rule-filters.ts'
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
import { asksForClusters, type LookupKey, lookupCluster } from '../cluster/lookup-cluster.ts'
import type { Revocable } from '../cluster/revocation.ts'
import { assumeUser } from '../identity/assume-user.ts'
import { identityProblem } from '../identity/impersonate.ts'
import type { Limits } from '../limits/limits.ts'
import { listRequestOf } from '../list-cost/list-request.ts'
import { ListSizes } from '../list-cost/list-sizes.ts'
import { isDryRunQuery } from '../policy/disruption.ts'
import { checkList, isExemptFromGuard } from '../policy/list-guard.ts'
import type { PolicyMatch } from '../policy/match-policy.ts'
import { unknownClusterMessage } from '../policy/policy-messages.ts'
import { noEndpointMessage } from '../policy/traffic-messages.ts'
import { isWatch } from '../request/long-running.ts'
import { readRequestHead } from '../request/request-head.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { CLUSTER_API_GROUP, scaleTargetOf } from '../request/scale-target.ts'
import { sessionKind } from '../request/session-request.ts'

export interface EvaluationInput {
  /** The Host field; its address and port also stand for the local address of the connection if that is not given. */
  host?: string
  method: string
  /** The raw request target. */
  target: string
  /** Absent or '': unauthenticated. */
  user?: string
  /** Default: those that Kubernetes assigns to this kind of user. */
  groups?: readonly string[]
  /** The original user of an impersonated request (kubectl --as). Default: the user. */
  impersonator?: string
  userAgent?: string
  /** The client's address, for access lists. */
  remoteAddress?: string
  /** Local address of the connection. */
  localAddress?: string
  localPort?: number
}

/** A further check of the request whose result is unknown here. */
export interface AlsoAsked {
  readonly filter: AskingFilter | 'list-guard'
  /** It only warns. */
  readonly shadow: boolean
  /** For people. */
  readonly text: string
}

export interface Evaluation {
  /** undefined = the target can't be parsed. */
  info: RequestInfo | undefined
  cluster: CompiledCluster | undefined
  matched: PolicyMatch | undefined
  policy: CompiledPolicy | undefined
  /** undefined = forwarded, as far as is known here, or answered by the gateway. */
  refusal: Refusal | undefined
  /** It asks for the list of clusters: the gateway answers it. */
  listsClusters: boolean
  /** Warnings of filters in shadow mode. */
  warnings: readonly string[]
  /** `filter/rule` of the same. */
  shadow: readonly string[]
  alsoAsked: readonly AlsoAsked[]
  /** What flow control took, to be released when the request ends; set even if a later filter refuses. */
  held: Held | undefined
}

/** `limits`: of a cluster. `moment`: the wall clock for the expiry of a degrade mode, the monotonic one for rates. */
interface EvaluationContext {
  readonly index: ClusterIndex
  /** Known list sizes of a cluster. Default: unknown. */
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
  if (asksForClusters(method, target, route)) {
    found.listsClusters = !isRefusal(info)
    return isRefusal(info) ? refused(found, info) : found
  }
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

/** Uses a copy of the known sizes: an evaluation must not change them. */
function listRequest(info: RequestInfo, target: string, lists: ListSizes = new ListSizes()): ListRequest | undefined {
  const list = listRequestOf(info, target, lists)
  return list?.size === undefined ? list : { ...list, shape: list.shape, size: { ...list.size } }
}

/** The credential is unknown here: only names count. */
function requesterOf({ impersonator = '' }: EvaluationInput, user: string, isAnonymous: boolean): Revocable {
  const name = impersonator === '' ? user : impersonator
  return { user: { name }, kind: isAnonymous ? 'anonymous' : 'token', hashes: [] }
}

/** URLs that may serve: in the policy's subset, enabled, with a weight. */
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

/** The size of the list may be unknown here. */
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

/** The body and the rate are unknown here; without a body, a removal is not a dry run. */
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
      ask(`degrade mode ${mode} depends on the body: whether that also says dryRun`)
    } else if (!isDryRun) {
      const what = found === 'replicas' ? 'lowers spec.replicas' : 'ends pods'
      ask(`degrade mode ${mode} depends on the body: whether it ${what}`)
    }
    return undefined
  },
}

/** PodProtectors are unknown here: it can only say that they would be asked. */
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

/** ScaleDownPolicies are unknown here, and refuse only if configured to. */
const scaleDownPolicy: Filter<EvaluatedAdmission> = { shadow: () => false, check: () => undefined }

/** ScaleUpGuards are unknown here, too. */
const scaleUpGuard: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ info, alsoAsked }) {
    if (!isGroupWrite(info)) return undefined
    const text = 'ScaleUpGuards are asked whether the group is backed off'
    alsoAsked.push({ filter: 'scale-up-guard', shadow: false, text })
    return undefined
  },
}

/** Both the body and the pods are unknown here. */
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

/** Whether it is recorded depends on the gateway's disk at that moment. */
const sessionRecording: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ cluster, info, isUpgrade, alsoAsked }) {
    const { sessionRecording: settings } = cluster
    const kind = sessionKind(info)
    if (settings === undefined || !isUpgrade || kind === undefined) return undefined
    if (kind === 'portforward' && settings.portForwards === 'None') return undefined
    const text = settings.isRequired
      ? 'the session is recorded; if it cannot be, it is refused'
      : 'the session is recorded, unless it cannot be'
    alsoAsked.push({ filter: 'session-recording', shadow: false, text })
    return undefined
  },
}

/** Whether it answers depends on its content at that moment; it never refuses. */
const readCache: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ cluster, info, alsoAsked }) {
    const { verb, apiGroup, apiVersion, resource, subresource } = info
    const isRead = (verb === 'get' || verb === 'list' || verb === 'watch') && subresource === ''
    const isKept = cluster.cache?.some((one) => {
      return one.resource === resource && one.group === apiGroup && one.version === apiVersion
    })
    if (!isRead || isKept !== true) return undefined
    const text = 'the read cache answers if it can prove the answer; otherwise the request is forwarded'
    alsoAsked.push({ filter: 'read-cache', shadow: false, text })
    return undefined
  },
}

/** Which members answer is known there. */
const federation: Filter<EvaluatedAdmission> = {
  shadow: () => false,
  check({ cluster, alsoAsked }) {
    if (cluster.federation === undefined) return undefined
    const names = cluster.federation.members.map(({ name }) => name).join(', ')
    const text = `it is answered from what is kept of ${names}, if each of them lets the user read it; logs and sessions of a pod are handed over to its member, which decides about them by its own rules; everything else is refused`
    alsoAsked.push({ filter: 'federation', shadow: false, text })
    return undefined
  },
}

function isGroupWrite(info: RequestInfo): boolean {
  const target = scaleTargetOf(info)
  return target !== undefined && target.apiGroup === CLUSTER_API_GROUP
}

const SET: Readonly<Record<FilterName, Filter<EvaluatedAdmission>>> = {
  ...PURE_FILTERS,
  'list-guard': explainedListGuard,
  federation,
  'session-recording': sessionRecording,
  disruption,
  'scale-up-guard': scaleUpGuard,
  protection,
  'scale-protection': scaleProtection,
  'scale-down-policy': scaleDownPolicy,
  'read-cache': readCache,
}
const FILTERS = new Pipeline<EvaluatedAdmission>(SET)

/** Runs the filters, then checks that there is an endpoint. */
function admit(found: Evaluation, admission: EvaluatedAdmission): Evaluation {
  const permit = FILTERS.run(admission)
  const { cluster, policy, warnings, shadow, alsoAsked, held } = admission
  found.warnings = warnings
  found.shadow = shadow
  found.alsoAsked = alsoAsked
  found.held = held
  if (isRefusal(permit)) return refused(found, permit)
  if (cluster.federation !== undefined) return found
  const hasEndpoint = policy.endpoints.length > 0 && servingEndpoints(cluster, policy).length > 0
  return hasEndpoint ? found : refused(found, refuse('no-endpoint', noEndpointMessage(cluster.name)))
}

/** Without a local address, an address or a port in the host stands for it. */
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
    listsClusters: false,
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
