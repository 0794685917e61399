// Explains what the gateway would do with one request, for people and programs: words the results of evaluate-request.ts. Endpoint health
// and the state of limits are unknown here.

import { REFUSAL_TABLE } from '../../../kit/core/refusal/refusal.ts'
import { addressCharge, userCharge } from '../../../kit/core/shares/charge.ts'
import { ANONYMOUS_USER } from '../../../kube/api/user.ts'
import type { ClusterIndex } from '../cluster/cluster-index.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { assumeUser } from '../identity/assume-user.ts'
import { freshLimits } from '../limits/limits.ts'
import type { ListSizes } from '../list-cost/list-sizes.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { shareWeight, USUAL_WEIGHT } from '../shares/weight.ts'
import { type EvaluationInput, evaluateRequest, servingEndpoints } from './evaluate-request.ts'

export type ExplainInput = EvaluationInput

export interface ExplainOutput {
  /** null if the target can't be parsed. */
  requestInfo: RequestInfo | null
  cluster: string | null
  /** Index into spec.dispatchPolicies. */
  policy: number | null
  /** Index into the policy's rules. */
  rule: number | null
  /** Name of the flow control schema. */
  flowControl: string | null
  /** URLs that may serve: in the policy's subset, enabled, with a weight. */
  endpoints: string[]
  /** The source charged for it, and its weight; null if unknown. */
  share: { source: string; weight: number } | null
  /** `answer`: by the gateway itself, for no cluster. */
  decision: 'forward' | 'refuse' | 'answer'
  /** HTTP status of the refusal; 200 when forwarded or answered. */
  code: number
  /** metav1.Status.reason of the refusal; '' when forwarded. */
  reason: string
  /** Message of the refusal; when forwarded, shadow mode warnings and further checks. */
  message: string
}

/**
 * @param nowMs milliseconds since the epoch, for the expiry of a degrade mode
 * @param lists known list sizes of a cluster. Default: unknown
 */
export function explainRequest(
  index: ClusterIndex,
  input: ExplainInput,
  nowMs: number,
  lists?: (cluster: string) => ListSizes | undefined,
): ExplainOutput {
  const context = {
    index,
    ...(lists === undefined ? {} : { lists }),
    limits: freshLimits,
    moment: { nowMs, monotonicMs: 0 },
  }
  const { info, cluster, matched, policy, refusal, listsClusters, warnings, alsoAsked } = evaluateRequest(
    input,
    context,
  )
  const row = refusal === undefined ? undefined : REFUSAL_TABLE[refusal.refused]
  return {
    requestInfo: info === undefined ? null : describe(info),
    cluster: cluster?.name ?? null,
    policy: matched?.policy ?? null,
    rule: matched?.rule ?? null,
    flowControl: (policy && cluster?.schemas[policy.schema]?.name) ?? null,
    endpoints: cluster === undefined || policy === undefined ? [] : servingEndpoints(cluster, policy),
    share: cluster === undefined ? null : shareOf(cluster, input),
    decision: refusal !== undefined ? 'refuse' : listsClusters ? 'answer' : 'forward',
    code: row?.code ?? 200,
    reason: row?.statusReason ?? '',
    message: refusal?.message ?? [...warnings, ...alsoAsked.map(({ text }) => text)].join('; '),
  }
}

/** The original user is charged, not the impersonated one; for an impersonator only the name is known here. */
function shareOf(
  cluster: CompiledCluster,
  { user = '', groups, impersonator = '', remoteAddress = '' }: ExplainInput,
): ExplainOutput['share'] {
  const sender = impersonator === '' ? assumeUser(user, groups) : assumeUser(impersonator, undefined)
  if (sender.name !== ANONYMOUS_USER) {
    const { source, weight } = userCharge(cluster.name, sender.name, shareWeight(cluster.weights, sender))
    return { source, weight }
  }
  return remoteAddress === '' ? null : { source: addressCharge(remoteAddress).source, weight: USUAL_WEIGHT }
}

/** A copy with its fields in the order that people expect. */
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

// One line of `portcullis explain --stdin`: JSON, of which only request fields are read, so that a line of the access log can be used
// unchanged.

/** `{ error }` says what is wrong with the line. */
export function parseExplainLine(line: string): ExplainInput | { readonly error: string } {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return { error: 'not JSON' }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { error: 'not a JSON object' }
  const fields = new Map<string, unknown>(Object.entries(value))
  const method = fields.get('method')
  const target = fields.get('target')
  if (typeof method !== 'string' || method === '') return { error: '"method" must be a string such as "GET"' }
  if (typeof target !== 'string' || target === '') return { error: '"target" must be a string such as "/api/v1/pods"' }
  const input: ExplainInput = { method, target }
  for (const key of ['host', 'user', 'userAgent', 'remoteAddress'] as const) {
    const text = fields.get(key) ?? undefined
    if (text === undefined) continue
    if (typeof text !== 'string') return { error: `"${key}" must be a string` }
    input[key] = text
  }
  const groups = fields.get('groups') ?? undefined
  if (groups === undefined) return input
  if (!isStrings(groups)) return { error: '"groups" must be a list of strings' }
  input.groups = groups
  return input
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}
