// What the gateway would do with a request, without doing it: the same steps and the same filters, as far as configuration
// decides. Health of endpoints and fill levels of limits are not known here.

import { ANONYMOUS_USER } from '../../api/kube/user.ts'
import { canonicalIp } from '../../api/validation/ip-address.ts'
import { guardedDisruption, refuseDisruption } from '../admission/disruption.ts'
import type { Admission, Filter } from '../admission/filter.ts'
import { type FilterSet, PURE_FILTERS } from '../admission/order.ts'
import { Pipeline } from '../admission/pipeline.ts'
import { protectionOf } from '../admission/pod-deletion.ts'
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
import { freshLimits } from '../limits/limits.ts'
import { isDryRunQuery } from '../policy/disruption.ts'
import { unknownClusterMessage } from '../policy/policy-messages.ts'
import { noEndpointMessage } from '../policy/traffic-messages.ts'
import { isRefusal, REFUSAL_TABLE, type Refusal, refuse } from '../refusal/refusal.ts'
import { isWatch } from '../request/long-running.ts'
import { readRequestHead } from '../request/request-head.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { CLUSTER_API_GROUP, scaleTargetOf } from '../scale/scale-write/scale-target.ts'

export interface ExplainInput {
  /** As in Host; its address and port also stand for where the connection arrived. */
  host?: string
  method: string
  /** The raw request target. */
  target: string
  /** Absent or '': anonymous. */
  user?: string
  /** Default: those that Kubernetes gives the user by its kind. */
  groups?: readonly string[]
  userAgent?: string
  /** The client's address, for access lists. */
  remoteAddress?: string
}

export interface ExplainOutput {
  /** Null when the target cannot be parsed. */
  requestInfo: RequestInfo | null
  cluster: string | null
  /** Index into spec.dispatchPolicies. */
  policy: number | null
  /** Index into the policy's rules. */
  rule: number | null
  /** Name of the flow control schema. */
  flowControl: string | null
  /** URLs that may serve: of the policy's subset, enabled, with a weight. */
  endpoints: string[]
  decision: 'forward' | 'refuse'
  /** Of the refusal; 200 when forwarded. */
  code: number
  /** metav1.Status.reason of the refusal; '' when forwarded. */
  reason: string
  /** Of the refusal; when forwarded, what filters in shadow mode would have said, and who else is asked. */
  message: string
}

/** `nowMs`: milliseconds since the epoch, for the expiry of a degrade mode. */
export function explainRequest(index: ClusterIndex, input: ExplainInput, nowMs: number): ExplainOutput {
  const output = emptyOutput()
  const { method, target, host = '' } = input
  const { problem } = readRequestHead([':method', method, ':path', target, ':authority', host], '', true)
  if (problem !== '') return refused(output, refuse('bad-request', problem))
  const tooLong = refuseLongTarget(input.target)
  if (tooLong !== undefined) return refused(output, tooLong)
  const found = lookupCluster(index, lookupKey(input))
  const info = readRequestInfo(input.method, 'unknown' in found ? input.target : found.target)
  if (!isRefusal(info)) output.requestInfo = describe(info)
  if ('unknown' in found) return refused(output, refuse('unknown-cluster', unknownClusterMessage(found.unknown)))
  const { cluster } = found
  output.cluster = cluster.name
  if (isRefusal(info)) return refused(output, info)

  const user = assumeUser(input.user ?? '', input.groups)
  const isAnonymous = user.name === ANONYMOUS_USER
  const isUnknown = (isAnonymous && !cluster.authentication.anonymous) || identityProblem(user) !== ''
  if (isUnknown) return refused(output, refuseUnauthorized())
  // Which credential it would be is not known here: only names count.
  const requester: Revocable = { user, kind: isAnonymous ? 'anonymous' : 'token', hashes: [] }
  const revoked = refuseRevoked(cluster.authentication.revoked, requester)
  if (revoked !== undefined) return refused(output, revoked)
  const userAgent = input.userAgent ?? ''
  const matched = selectPolicy(cluster, info, user, userAgent)
  if (isRefusal(matched)) return refused(output, matched)
  const policy = policyOf(cluster, matched)
  const { rule } = matched
  output.policy = matched.policy
  output.rule = rule
  output.flowControl = cluster.schemas[policy.schema]?.name ?? null
  output.endpoints = servingEndpoints(cluster, policy)
  return admit(output, {
    cluster,
    limits: freshLimits(),
    policy,
    rule,
    info,
    user,
    userAgent,
    remoteAddress: input.remoteAddress ?? '',
    isWatch: isWatch(info),
    moment: { nowMs, monotonicMs: 0 },
    passed: 0,
    held: undefined,
    warnings: [],
    shadow: [],
    target: found.target,
    alsoAsked: [],
  })
}

interface ExplainedAdmission extends Admission {
  /** The raw request target. */
  readonly target: string
  /** Who decides, too, and is not known here; for people. */
  readonly alsoAsked: string[]
}

/** The body and the rate are not known here; without a body, a removal is not a dry run. */
const disruption: Filter<ExplainedAdmission> = {
  shadow: ({ cluster }) => cluster.degrade.shadow,
  check(admission) {
    const found = guardedDisruption(admission)
    if (found === undefined) return undefined
    const { cluster, alsoAsked, target } = admission
    const { mode } = cluster.degrade
    const isDryRun = isDryRunQuery(target)
    if (found === 'removal' && !isDryRun) {
      if (mode === 'NoDisruption') return refuseDisruption(admission, '')
      alsoAsked.push(`degrade mode ${mode} decides by its rate`)
    } else if (found === 'removal') {
      alsoAsked.push(`degrade mode ${mode} decides by the body: whether that says dryRun, too`)
    } else if (!isDryRun) {
      const what = found === 'taints' ? 'adds a NoExecute taint' : 'lowers spec.replicas'
      alsoAsked.push(`degrade mode ${mode} decides by the body: whether it ${what}`)
    }
    return undefined
  },
}

/** PodProtectors are not known here, so that nothing but their being asked can be told. */
const protection: Filter<ExplainedAdmission> = {
  shadow: () => false,
  check({ cluster, info, alsoAsked }) {
    const asked = protectionOf(cluster, info)
    if (asked === undefined) return undefined
    const { cell, shadow } = asked
    alsoAsked.push(`PodProtectors are asked (cell ${cell}${shadow ? ', shadow mode: they refuse nothing' : ''})`)
    return undefined
  },
}

/** ScaleDownPolicies are not known here, and refuse only where they say so. */
const scaleDownPolicy: Filter<ExplainedAdmission> = { shadow: () => false, check: () => undefined }

/** ScaleUpGuards are not known here either. */
const scaleUpGuard: Filter<ExplainedAdmission> = {
  shadow: () => false,
  check({ info, alsoAsked }) {
    if (isGroupWrite(info)) alsoAsked.push('ScaleUpGuards are asked whether the group is backed off')
    return undefined
  },
}

/** Neither the body nor the pods are known here. */
const scaleProtection: Filter<ExplainedAdmission> = {
  shadow: () => false,
  check({ cluster, info, user, alsoAsked }) {
    const asked = scaleProtectionOf(cluster, info, user.name)
    if (asked === undefined) return undefined
    const shadow = asked.shadow ? ' (shadow mode: they refuse nothing)' : ''
    alsoAsked.push(`if it lowers the replicas, PodProtectors are asked about the pods that go${shadow}`)
    return undefined
  },
}

function isGroupWrite(info: RequestInfo): boolean {
  const target = scaleTargetOf(info)
  return target !== undefined && target.apiGroup === CLUSTER_API_GROUP
}

const SET: FilterSet<ExplainedAdmission> = {
  ...PURE_FILTERS,
  disruption,
  'scale-up-guard': scaleUpGuard,
  protection,
  'scale-protection': scaleProtection,
  'scale-down-policy': scaleDownPolicy,
}
const FILTERS = new Pipeline<ExplainedAdmission>(SET)

/** The filters, then the choice of an endpoint. */
function admit(output: ExplainOutput, admission: ExplainedAdmission): ExplainOutput {
  const permit = FILTERS.run(admission)
  if (isRefusal(permit)) return refused(output, permit)
  const { cluster, warnings, alsoAsked } = permit
  if (output.endpoints.length === 0) return refused(output, refuse('no-endpoint', noEndpointMessage(cluster.name)))
  output.decision = 'forward'
  output.code = 200
  output.message = [...warnings, ...alsoAsked].join('; ')
  return output
}

function servingEndpoints(cluster: CompiledCluster, policy: CompiledPolicy): string[] {
  const urls: string[] = []
  for (const at of policy.endpoints) {
    const endpoint = cluster.endpoints[at]
    if (endpoint !== undefined && !endpoint.disabled && endpoint.weight > 0) urls.push(endpoint.url)
  }
  return urls
}

/** There is no connection: an address or a port in the host says where it would have arrived. */
function lookupKey({ host = '', target }: ExplainInput): LookupKey {
  const localAddress = canonicalIp(normalizeHost(host)) ?? ''
  const port = /(?:^\[[^\]]*\]|^[^:]*):(\d{1,5})$/.exec(host)?.[1]
  return { authority: host, target, localAddress, localPort: port === undefined ? 0 : Number(port) }
}

function emptyOutput(): ExplainOutput {
  return {
    requestInfo: null,
    cluster: null,
    policy: null,
    rule: null,
    flowControl: null,
    endpoints: [],
    decision: 'refuse',
    code: 0,
    reason: '',
    message: '',
  }
}

function refused(output: ExplainOutput, { refused: reason, message }: Refusal): ExplainOutput {
  const row = REFUSAL_TABLE[reason]
  output.code = row.code
  output.reason = row.statusReason
  output.message = message
  return output
}

/** A copy with its fields in the order in which people read them. */
function describe(info: RequestInfo): RequestInfo {
  return {
    isResourceRequest: info.isResourceRequest,
    verb: info.verb,
    apiPrefix: info.apiPrefix,
    apiGroup: info.apiGroup,
    apiVersion: info.apiVersion,
    namespace: info.namespace,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    path: info.path,
    fieldSelector: info.fieldSelector,
    labelSelector: info.labelSelector,
  }
}
