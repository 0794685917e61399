// The decision of the protection webhook on one review. The ledger evaluates it, as for the filter in the request path; this file adds
// what the filter has from its cluster and its upstream: the exclusions and the pod.

import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { StatusError } from '../../kube/api/status.ts'
import type { PodFacts, ProtectionGate, ProtectionRequest } from '../api/protection.ts'
import { isGuarded } from '../core/quota/guarded-pods.ts'
import { podFacts } from '../core/quota/pod-facts.ts'
import { type EvictionSubject, PROBE_ANSWER, type ReviewSubject } from '../core/quota/review-subject.ts'
import { allowed, evaluated, failed, refused, type WebhookDecision } from './answer.ts'

export interface WebhookReviewDeps {
  readonly gate: Omit<ProtectionGate, 'reviewScaleDown'>
  /** undefined = no UpstreamCluster has such a cell. */
  cell(id: string): { readonly protection: CompiledProtection } | undefined
  /** Reads the pod from the cell. Rejects with a StatusError of code 404 when it does not exist. */
  getPods(cell: string, namespace: string, name: string): Promise<readonly JsonObject[]>
  readonly clock: Clock
}

export interface AskedReview {
  readonly cell: string
  readonly subject: ReviewSubject
  /** The review may be forged: the pod is looked up before anything is recorded. */
  readonly unverified: boolean
  /** Monotonic deadline: a later answer is of no use to the caller. */
  readonly deadlineMs: number
}

/** Podseidon's message (webhook/handler/interpreter.go). */
const UNEXPECTED = 'Unexpected review subject; only pod deletions and evictions are handled by this webhook'

/** Never rejects because of the cell or the ledger. */
export async function decideReview(deps: WebhookReviewDeps, asked: AskedReview): Promise<WebhookDecision> {
  const { subject, cell } = asked
  if (subject.type === 'Unknown') return refused('Unexpected', 'InternalError', UNEXPECTED)
  // This is how the kubelet removes pods. Nothing is to be recorded.
  if (subject.type === 'DeletePod' && subject.pod.terminating) return allowed('AlreadyTerminating')
  const protection = deps.cell(cell)?.protection
  if (protection === undefined) return refused('UnknownCell', 'NotFound', unknownCell(cell))
  if (subject.type === 'EvictPod' && subject.probe) return answerProbe(deps, cell, subject, protection)
  const namespace = subject.type === 'DeletePod' ? subject.pod.namespace : subject.namespace
  if (protection.excludedNamespaces.has(namespace) || !deps.gate.covers(namespace)) return allowed('NotRelevant')
  const leftMs = Math.min(protection.timeoutMs, asked.deadlineMs - deps.clock.monotonic())
  return withinTime(evaluate(deps, asked, protection, leftMs), leftMs, protection)
}

async function evaluate(
  deps: WebhookReviewDeps,
  { cell, subject, unverified }: AskedReview,
  protection: CompiledProtection,
  timeoutMs: number,
): Promise<WebhookDecision> {
  if (subject.type === 'Unknown') return allowed('NotRelevant')
  const found =
    subject.type === 'DeletePod' && !unverified ? subject.pod : await lookUp(deps, cell, subject, protection)
  if ('status' in found) return found
  if (!isGuarded(protection, found.labels)) return allowed('NotRelevant')
  const request: ProtectionRequest = {
    cell,
    cause: subject.type,
    via: 'webhook',
    pod: found,
    criterion: subject.type === 'EvictPod' ? subject.criterion : undefined,
    user: subject.caller.name,
    dryRun: subject.dryRun,
    shadow: protection.shadow,
    timeoutMs,
  }
  const [verdict] = await deps.gate.review([request])
  if (verdict === undefined) throw new Error('the ledger gave no verdict')
  const marked = protection.shadow || found.forceDelete
  return evaluated(verdict, marked ? 'Ignore' : protection.failurePolicy, marked)
}

/** The pod, or the decision when it cannot be read. */
async function lookUp(
  deps: WebhookReviewDeps,
  cell: string,
  subject: Exclude<ReviewSubject, { type: 'Unknown' }>,
  protection: CompiledProtection,
): Promise<PodFacts | WebhookDecision> {
  const { namespace, name } = subject.type === 'DeletePod' ? subject.pod : subject
  let objects: readonly JsonObject[]
  try {
    objects = await deps.getPods(cell, namespace, name)
  } catch (error) {
    const message = errorMessage(error)
    if (error instanceof StatusError && error.code === 404) return refused('NotFound', 'NotFound', message)
    return failed(`pod ${namespace}/${name} cannot be read from cell ${cell}: ${message}`, policyOf(protection))
  }
  const pods = new Map(objects.flatMap((object) => podFacts(object) ?? []).map((pod) => [pod.uid, pod]))
  const meant = subject.type === 'DeletePod' ? subject.pod.uid : subject.onlyUid
  const pod = pods.get(meant) ?? pods.values().next().value
  if (subject.type === 'EvictPod' && pods.size > 1 && !pods.has(meant)) {
    const message = `several clusters of cell ${cell} have a pod ${namespace}/${name}, and an eviction does not say which`
    return failed(message, policyOf(protection))
  }
  if (pod === undefined) return failed(`pod ${namespace}/${name} of cell ${cell} has no uid`, policyOf(protection))
  if (subject.type === 'EvictPod') return preconditionFault(subject, pod) ?? pod
  // The pod under review is gone, and another one has its name: deleting that one was not requested.
  if (pod.uid !== subject.pod.uid) return refused('NotFound', 'NotFound', `pods "${name}" not found`)
  return pod
}

/** Always a refusal: nothing else in the response to a dry run reaches the caller. */
async function answerProbe(
  deps: WebhookReviewDeps,
  cell: string,
  subject: EvictionSubject,
  protection: CompiledProtection,
): Promise<WebhookDecision> {
  const found = await lookUp(deps, cell, subject, { ...protection, shadow: false, failurePolicy: 'Fail' })
  if ('status' in found && found.refusal?.reason !== 'NotFound') return found
  return refused('NotRelevant', 'NotFound', `${PROBE_ANSWER}cell ${cell} is protected here`)
}

/** The API server would refuse the eviction afterwards, and its reservation would be wasted. */
function preconditionFault(
  { onlyUid, onlyVersion, name }: EvictionSubject,
  pod: PodFacts,
): WebhookDecision | undefined {
  const fault = (field: string, wanted: string, is: string): WebhookDecision | undefined => {
    if (wanted === '' || wanted === is) return undefined
    const message = `the ${field} in the precondition (${wanted}) does not match the ${field} in record (${is})`
    return refused('NotFound', 'Conflict', `Operation cannot be fulfilled on pods "${name}": ${message}`)
  }
  return fault('UID', onlyUid, pod.uid) ?? fault('ResourceVersion', onlyVersion, pod.resourceVersion)
}

/** An answer that comes too late is useless; the aggregator finds that its reservation did not happen. */
async function withinTime(
  decision: Promise<WebhookDecision>,
  leftMs: number,
  protection: CompiledProtection,
): Promise<WebhookDecision> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<WebhookDecision>((resolve) => {
    const message = `pod deletion could not be evaluated within ${Math.max(0, Math.round(leftMs))} ms`
    timer = setTimeout(() => resolve(failed(message, policyOf(protection))), Math.max(0, leftMs))
  })
  try {
    return await Promise.race([decision, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Shadow mode refuses nothing, whatever goes wrong. */
function policyOf({ shadow, failurePolicy }: CompiledProtection): 'Fail' | 'Ignore' {
  return shadow ? 'Ignore' : failurePolicy
}

function unknownCell(cell: string): string {
  const what = `cell ${JSON.stringify(cell)} is not known here: no UpstreamCluster has it in spec.podProtection.cell`
  return `${what}; fix the path of the webhook, or remove the webhook: portcullis protect uninstall`
}
