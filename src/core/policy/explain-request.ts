// What the gateway would do with a request, without doing it: the steps of src/gateway/serve.ts in their order, as far
// as configuration decides them. Health of endpoints and fill levels of limits are not known here.

import { ANONYMOUS_USER, type UserInfo } from '../../api/kube/user.ts'
import { canonicalIp } from '../../api/validation/ip-address.ts'
import { type ClusterIndex, normalizeHost } from '../cluster/cluster-index.ts'
import type { CompiledCluster, CompiledPolicy } from '../cluster/compiled-cluster.ts'
import { type LookupKey, lookupCluster } from '../cluster/lookup-cluster.ts'
import { revokedUserMessage } from '../cluster/revocation.ts'
import { assumeUser } from '../identity/assume-user.ts'
import { REFUSAL_TABLE, type RefusalReason } from '../refusal/refusal.ts'
import { MAX_TARGET_LENGTH, parseRequestInfo, type RequestInfo } from '../request/request-info.ts'
import { checkAccess } from './access-list.ts'
import { checkDegrade, degradeMessage, effectiveMode } from './degrade.ts'
import { matchPolicy } from './match-policy.ts'
import {
  accessDeniedMessage,
  noPolicyMessage,
  policyDeniedMessage,
  targetTooLongMessage,
  unknownClusterMessage,
} from './policy-messages.ts'
import { noEndpointMessage, tooManyInFlightMessage } from './traffic-messages.ts'

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

export interface ExplainedRequestInfo {
  isResourceRequest: boolean
  verb: string
  apiPrefix: string
  apiGroup: string
  apiVersion: string
  namespace: string
  resource: string
  subresource: string
  name: string
  path: string
  fieldSelector: string
  labelSelector: string
}

export interface ExplainOutput {
  /** Null when the target cannot be parsed. */
  requestInfo: ExplainedRequestInfo | null
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
  const { length } = input.target
  if (length > MAX_TARGET_LENGTH) return refused(output, 'target-too-long', targetTooLongMessage(length))
  const found = lookupCluster(index, lookupKey(input))
  const info = parseRequestInfo(input.method, 'unknown' in found ? input.target : found.target)
  if (!('failure' in info)) output.requestInfo = describe(info)
  if ('unknown' in found) return refused(output, 'unknown-cluster', unknownMessage(found.unknown))
  const { cluster } = found
  output.cluster = cluster.name
  if ('failure' in info) return refused(output, info.code === 400 ? 'bad-request' : 'request-info', info.failure)

  const user = assumeUser(input.user ?? '', input.groups)
  if (user.name === ANONYMOUS_USER && !cluster.authentication.anonymous) {
    return refused(output, 'unauthorized', 'Unauthorized')
  }
  const { revoked } = cluster.authentication
  if (revoked?.users.has(user.name) === true) {
    return refused(output, 'revoked', `Unauthorized: ${revokedUserMessage(user.name)}`)
  }
  const userAgent = input.userAgent ?? ''
  const matched = matchPolicy(cluster.policies, info, user, userAgent)
  const policy = matched === undefined ? undefined : cluster.policies[matched.policy]
  if (matched === undefined || policy === undefined) {
    return refused(output, 'no-policy', noPolicyMessage(user, info, cluster.name))
  }
  output.policy = matched.policy
  output.rule = matched.rule
  output.flowControl = cluster.schemas[policy.schema]?.name ?? null
  output.endpoints = servingEndpoints(cluster, policy)
  return admit(output, { cluster, policy, rule: matched.rule, info, user, userAgent, input, nowMs })
}

interface Admission {
  readonly cluster: CompiledCluster
  readonly policy: CompiledPolicy
  readonly rule: number
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly userAgent: string
  readonly input: ExplainInput
  readonly nowMs: number
}

interface Verdict {
  readonly filter: string
  readonly reason: RefusalReason
  readonly message: string
  readonly shadow: boolean
}

/** The filters in their order (src/gateway/filters/order.ts), then the choice of an endpoint. */
function admit(output: ExplainOutput, admission: Admission): ExplainOutput {
  const warnings: string[] = []
  for (const filter of [accessVerdict, actionVerdict, degradeVerdict, limitVerdict]) {
    const verdict = filter(admission)
    if (verdict === undefined) continue
    if (!verdict.shadow) return refused(output, verdict.reason, verdict.message)
    warnings.push(`${verdict.filter} in shadow mode would refuse: ${verdict.message}`)
  }
  if (output.endpoints.length === 0) return refused(output, 'no-endpoint', noEndpointMessage(admission.cluster.name))
  output.decision = 'forward'
  output.code = 200
  output.message = [...warnings, ...protectionNote(admission)].join('; ')
  return output
}

function accessVerdict({ cluster, user, userAgent, input }: Admission): Verdict | undefined {
  if (cluster.access === undefined) return undefined
  const refusal = checkAccess(cluster.access, user, userAgent, input.remoteAddress ?? '')
  if (refusal === undefined) return undefined
  const message = accessDeniedMessage(user, cluster.name, refusal)
  return { filter: 'access-list', reason: 'access-denied', message, shadow: cluster.access.shadow }
}

function actionVerdict({ cluster, policy, rule, info, user }: Admission): Verdict | undefined {
  if (!policy.deny) return undefined
  const message = policyDeniedMessage(user, info, cluster.name, policy.index, rule)
  return { filter: 'dispatch-action', reason: 'policy-denied', message, shadow: policy.shadow }
}

function degradeVerdict({ cluster, info, user, userAgent, nowMs }: Admission): Verdict | undefined {
  const { degrade } = cluster
  if (checkDegrade(degrade, info, user, userAgent, nowMs) !== 'refuse') return undefined
  const message = degradeMessage(cluster.name, degrade, effectiveMode(degrade, nowMs))
  return { filter: 'degrade', reason: 'degraded', message, shadow: degrade.shadow }
}

/** The answer is that of PodProtectors, which are not known here. */
function protectionNote({ cluster: { protection }, info }: Admission): string[] {
  if (protection === undefined || !isPodDeletion(info) || protection.excludedNamespaces.has(info.namespace)) return []
  const { cell, shadow } = protection
  return [`PodProtectors are asked (cell ${cell}${shadow ? ', shadow mode: they refuse nothing' : ''})`]
}

function isPodDeletion({ isResourceRequest, apiGroup, resource, subresource, verb }: RequestInfo): boolean {
  if (!isResourceRequest || apiGroup !== '' || resource !== 'pods') return false
  if (subresource === 'eviction') return verb === 'create'
  return subresource === '' && (verb === 'delete' || verb === 'deletecollection')
}

/** The one limit that needs no traffic to be exceeded. */
function limitVerdict({ cluster, policy }: Admission): Verdict | undefined {
  const schema = cluster.schemas[policy.schema]
  if (schema === undefined || schema.kind !== 'maxRequestsInflight' || schema.max > 0) return undefined
  const message = tooManyInFlightMessage(cluster.name, schema)
  return { filter: 'flow-control', reason: 'too-many-in-flight', message, shadow: schema.shadow }
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

function unknownMessage(asked: string): string {
  if (asked !== '') return unknownClusterMessage(asked)
  return 'no host is given and no cluster is the default: name a host, or a target under /clusters/<name>/'
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

function refused(output: ExplainOutput, reason: RefusalReason, message: string): ExplainOutput {
  const row = REFUSAL_TABLE[reason]
  output.code = row.code
  output.reason = row.statusReason
  output.message = message
  return output
}

function describe(info: RequestInfo): ExplainedRequestInfo {
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
