// The steps of a deletion or an eviction that is evaluated: its body and the pods that it means are read, consistently, not from a cache of the API
// server; the ledger is asked, fairly queued by caller; and its verdict is applied: the deletion passes, bound to the pod that was evaluated, passes
// with a warning, or is refused.

import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { CallRate } from '../../gateway/core/limits/call-turns.ts'
import { deletionTurnMessage } from '../../gateway/core/policy/traffic-messages.ts'
import { fieldsForBody, UnreadableBody } from '../../gateway/core/request/write-envelope.ts'
import { longestWaitMs, takeTurnIn } from '../../gateway/request/calls/call-turn.ts'
import { type Removal, readRemoval } from '../../gateway/request/calls/request-bodies.ts'
import {
  type Collection,
  type Limited,
  type Outcome,
  type Read,
  refuseLimited,
  type Unknown,
  UpstreamReader,
} from '../../gateway/request/calls/upstream-reader.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import { MAX_DELETIONS } from '../../gateway/state/clusters.ts'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { CallLimitError, KubeCallError } from '../../kube/core/answers/call-errors.ts'
import {
  AUDIT_DRY_RUN,
  AUDIT_REJECTED_BY,
  type HealthCriterion,
  type PodFacts,
  type ProtectionCause,
  type ProtectionGate,
  type ProtectionRequest,
  type ProtectionVerdict,
} from '../api/protection.ts'
import { meansNotDeleted, unansweredVerdict } from '../core/ledger/verdicts.ts'
import { healthCriterion, podFacts } from '../core/quota/pod-facts.ts'

export interface Deletion {
  readonly exchange: Exchange
  readonly decision: Decision
  readonly settings: CompiledProtection
  readonly gate: ProtectionGate
  readonly cause: ProtectionRequest['cause']
}

export interface AskedDeletion extends Removal {
  /** The Eviction's own, which outranks the pod's; undefined = none. */
  readonly criterion: HealthCriterion | undefined
  /** Request header fields, unmodified. */
  readonly fields: HeaderList
}

// === what is asked ===

/** Reads and parses the body. Only for an authorized caller. */
export async function readAsked({ exchange, cause }: Deletion): Promise<AskedDeletion | Refusal> {
  try {
    const isEviction = cause === 'EvictPod'
    const removal = await readRemoval(exchange, isEviction, 'where this gateway protects pods')
    if (isRefusal(removal)) return removal
    const criterion = isEviction ? healthCriterion(removal.annotations) : undefined
    return { ...removal, criterion, fields: exchange.head.fields }
  } catch (error) {
    if (!(error instanceof UnreadableBody)) throw error
    return refuse(UNREADABLE[error.code], error.message)
  }
}

const UNREADABLE = { 400: 'bad-request', 413: 'body-too-large', 415: 'unsupported-media-type' } as const

/** Per namespace: a cluster has at most 150,000 (kubernetes.io/docs/setup/best-practices/cluster-large). */
const MAX_PODS = 150_000

export async function findPod(deletion: Deletion, name: string): Promise<Outcome<PodFacts>> {
  const path = `${podsPath(deletion.decision.info.namespace)}/${encodeURIComponent(name)}`
  const found = await readerFor(deletion).get(path)
  if (found.kind === 'absent') return found
  if (found.kind !== 'found') return unread('the pod cannot be read', found)
  const pod = podFacts(found.value)
  if (pod !== undefined) return { kind: 'found', value: pod }
  return { kind: 'unknown', why: 'the pod cannot be read: the answer is not a Pod' }
}

/** @param limit 0 = all */
export async function listPods(deletion: Deletion, limit: number): Promise<Read<Collection<PodFacts>>> {
  const { namespace, fieldSelector, labelSelector } = deletion.decision.info
  const query = [
    fieldSelector === '' ? '' : `fieldSelector=${encodeURIComponent(fieldSelector)}`,
    labelSelector === '' ? '' : `labelSelector=${encodeURIComponent(labelSelector)}`,
  ]
  const found = await readerFor(deletion).list(
    podsPath(namespace),
    query.filter((one) => one !== '').join('&'),
    limit === 0 ? MAX_PODS : limit,
    (items) => items.map((item) => (isRecord(item) ? podFacts(item) : undefined) ?? notAPod()),
  )
  if (found.kind !== 'found') return unread('the pods cannot be listed', found)
  if (limit !== 0 || textOf(found.value.metadata['continue']) === '') return found
  const why = `the pods cannot be listed: there are more than ${MAX_PODS}`
  return { kind: 'limited', why, retryAfterSeconds: 0 }
}

function notAPod(): never {
  throw new KubeCallError('the answer is not a PodList')
}

/** Reads are charged to the caller. */
function readerFor({ decision, settings }: Deletion): UpstreamReader {
  return new UpstreamReader(decision, 'pod-read', () => settings.timeoutMs)
}

/** Fails closed: what is too large to read is not deleted, whatever the failure policy says. */
function unread(what: string, fault: Unknown | Limited): Unknown | Limited {
  if (fault.kind === 'limited') return fault
  const why = `${what}: ${fault.why}`
  return fault.tooLarge ? { kind: 'limited', why, retryAfterSeconds: 0 } : { ...fault, why }
}

export function podsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`
}

// === the verdict ===

/** What the ledger is told of the request. */
type AskedReview = Pick<AskedDeletion, 'criterion' | 'dryRun'>

/** The ledger's verdict on one pod. Its reservation belongs to the exchange from here on. */
export async function reviewDeletion(
  deletion: Deletion,
  asked: AskedReview,
  pod: PodFacts,
): Promise<ProtectionVerdict> {
  const [verdict = NO_VERDICT] = await reviewDeletions(deletion, asked, [pod])
  hold(deletion, verdict)
  return verdict
}

/**
 * Asks the ledger when the caller's turn comes, so that thousands of deletions by one user don't delay another's. A deletion without a
 * turn in time is refused, whatever the failure policy says.
 * @returns a verdict for each pod, in their order
 */
export async function reviewDeletions(
  deletion: Deletion,
  asked: AskedReview,
  pods: readonly PodFacts[],
): Promise<readonly ProtectionVerdict[]> {
  const { exchange, decision, gate, settings } = deletion
  const { gw, charge } = exchange
  const requests = pods.map((pod) => requestOf(deletion, asked, pod))
  try {
    const done = await takeTurnIn(gw, decision.live.turns.deletions, charge, longestWaitMs(settings.timeoutMs), {
      rate: () => UNLIMITED,
      message: (_, seconds) => deletionTurnMessage(decision.cluster.name, charge.source, MAX_DELETIONS, seconds),
    })
    const verdicts = await gate.review(requests).finally(done)
    return requests.map((_, at) => verdicts[at] ?? NO_VERDICT)
  } catch (error) {
    if (!(error instanceof CallLimitError)) throw error
    return requests.map((request) => notNow(request, error))
  }
}

function requestOf(
  { decision, settings, cause }: Deletion,
  { criterion, dryRun }: AskedReview,
  pod: PodFacts,
): ProtectionRequest {
  return {
    cell: settings.cell,
    cause,
    via: 'filter',
    pod,
    criterion,
    user: decision.user.name,
    dryRun,
    shadow: settings.shadow,
    timeoutMs: settings.timeoutMs,
  }
}

/** Releases the reservation unless the pod may have been deleted. */
function hold({ exchange, gate }: Deletion, { reservation }: ProtectionVerdict): void {
  if (reservation === undefined) return
  // Aborted meanwhile: nothing will be sent.
  if (exchange.phase === 'over') gate.release([reservation])
  else {
    exchange.onOutcome = (outcome) => {
      if (outcome === 'unsent' || (outcome !== 'unknown' && meansNotDeleted(outcome))) gate.release([reservation])
    }
  }
}

const UNLIMITED: CallRate = { qps: 0, burst: 0 }
const NO_VERDICT: ProtectionVerdict = errorVerdict('the ledger gave no verdict')

function notNow(request: ProtectionRequest, { message, retryAfterSeconds }: CallLimitError): ProtectionVerdict {
  const pass = unansweredVerdict(request, message)
  // Passes if no protector can refuse it.
  if (pass.admitted) return pass
  return { ...errorVerdict(message), status: 'RetryAdvised', retryAfterSeconds }
}

/** Evaluation failed: the failure policy decides about the deletion. */
function errorVerdict(message: string): ProtectionVerdict {
  return {
    status: 'Error',
    admitted: false,
    freePass: false,
    overridden: '',
    protector: '',
    message,
    causes: [],
    retryAfterSeconds: 0,
    reservation: undefined,
  }
}

// === what follows from it ===

/** Annotation names as kube-apiserver gives them to the webhook. */
const AUDIT_PREFIX = 'podseidon.kubewharf.io/'
/** policy/v1 DisruptionBudgetCause: tells clients that the eviction is refused temporarily. */
const DISRUPTION_BUDGET = 'DisruptionBudget'

/** Why a deletion passes that was not admitted; '' = it doesn't. */
function passReason({ settings }: Deletion, verdict: ProtectionVerdict): ProtectionVerdict['overridden'] {
  if (verdict.admitted || verdict.overridden !== '') return verdict.overridden
  if (settings.shadow) return 'shadow'
  return verdict.status === 'Error' && settings.failurePolicy === 'Ignore' ? 'failure-policy' : ''
}

/** Records the verdict for logs and warnings. @returns the refusal; undefined = it passes */
export function follow(deletion: Deletion, name: string, verdict: ProtectionVerdict): Refusal | undefined {
  const { exchange, decision } = deletion
  const { record } = exchange
  const reason = passReason(deletion, verdict)
  if (record.protection === '' || !verdict.admitted) record.protection = verdict.status
  if (!verdict.admitted) recordForAudit(deletion, verdict, reason)
  if (reason !== '') decision.warnings = [...decision.warnings, warningText(name, verdict, reason)]
  if (reason === 'shadow') {
    decision.shadow = [...decision.shadow, `protection/${verdict.protector}`]
    record.shadow = decision.shadow
  }
  return verdict.admitted || reason !== '' ? undefined : refusalOf(deletion, name, verdict)
}

/**
 * The pods to be deleted could not be read. If that is due to a limit of the gateway, it is refused, whatever the failure policy says.
 * @returns the refusal; undefined = the failure policy, or shadow mode, lets it pass
 */
export function followUnread(deletion: Deletion, name: string, found: Unknown | Limited): Refusal | undefined {
  const verdict = errorVerdict(found.why)
  if (found.kind === 'unknown' || deletion.settings.shadow) return follow(deletion, name, verdict)
  if (found.retryAfterSeconds === 0) return refusalOf(deletion, name, verdict)
  return refuseLimited(found, 'pod-read', { kind: 'pods', name })
}

/**
 * What is to be deleted, or the caller's right, is unknown: the failure policy decides.
 * @param asked undefined = the body was not read: if the request passes, it is sent unmodified
 */
export function passUnreviewed(
  deletion: Deletion,
  asked: AskedDeletion | undefined,
  found: Unknown | Limited,
): Refusal | undefined {
  const { exchange, decision } = deletion
  const { gw, record } = exchange
  gw.log.warn('deletion could not be evaluated', {
    cluster: record.cluster,
    reason: found.why,
    auditId: record.auditId,
  })
  const refused = followUnread(deletion, decision.info.name, found)
  if (refused === undefined && asked !== undefined) keepBody(deletion, asked)
  return refused
}

function recordForAudit({ exchange: { record } }: Deletion, verdict: ProtectionVerdict, reason: string): void {
  const found: Record<string, string> = { ...record.auditAnnotations }
  if (reason === 'shadow' || reason === 'force-delete') found[`${AUDIT_PREFIX}${AUDIT_DRY_RUN}`] = '1'
  // Keep the first one.
  if (verdict.protector !== '') found[`${AUDIT_PREFIX}${AUDIT_REJECTED_BY}`] ??= nameOf(verdict)
  record.auditAnnotations = found
}

function warningText(name: string, verdict: ProtectionVerdict, reason: ProtectionVerdict['overridden']): string {
  switch (reason) {
    case 'shadow':
      return `protection in shadow mode would refuse to delete pod "${name}": ${verdict.message}`
    case 'force-delete':
      return `pod "${name}" is deleted by force: ${verdict.message}`
    default:
      return `pod "${name}" is deleted without protection: ${verdict.message}`
  }
}

function refusalOf(deletion: Deletion, name: string, verdict: ProtectionVerdict): Refusal {
  const { message, retryAfterSeconds, protector } = verdict
  const object = { kind: 'pods', name }
  const causes = deletion.cause === 'EvictPod' ? withBudget(verdict.causes, message) : verdict.causes
  if (verdict.status !== 'Error')
    return refuse('protected', message, { causes, retryAfterSeconds, rule: protector, object })
  const reason = deletion.cause === 'EvictPod' ? 'eviction-unavailable' : 'protection-unavailable'
  return refuse(reason, `pod "${name}" cannot be deleted now: ${message}`, { causes, rule: protector, object })
}

function withBudget(causes: readonly ProtectionCause[], message: string): readonly ProtectionCause[] {
  if (causes.some(({ reason }) => reason === DISRUPTION_BUDGET)) return causes
  return [{ reason: DISRUPTION_BUDGET, message, field: '' }, ...causes]
}

/** Without the namespace, which is the request's; same format as the webhook's. */
function nameOf({ protector }: ProtectionVerdict): string {
  return protector.slice(protector.indexOf('/') + 1)
}

/**
 * A uid that no pod has, as a precondition: upstream then reports itself that there is no such pod, and deletes none created
 * meanwhile.
 */
export const NO_POD_UID = '00000000-0000-0000-0000-000000000000'

/**
 * Sends the request upstream unmodified: only if the failure policy allows everything. The body that was read is the one
 * sent, so that no other parser of it can arrive at another pod.
 */
function keepBody({ exchange }: Deletion, asked: AskedDeletion): void {
  exchange.head.fields = [...asked.fields]
  exchange.setBody(asked.bytes)
}

/**
 * Restricts the request to the pod with this uid, whatever other pod takes its name.
 * @param resourceVersion additional precondition; '' = any version
 */
export function bindBody({ exchange }: Deletion, asked: AskedDeletion, uid: string, resourceVersion: string): void {
  const body = asked.bound(uid, resourceVersion)
  exchange.head.fields = fieldsForBody(asked.fields, asked.contentType, body.length)
  exchange.setBody(body)
}
