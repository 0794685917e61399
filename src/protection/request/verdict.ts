// Asks the ledger, fairly queued by caller, and applies its verdict: the deletion passes, passes with a warning, or is refused.

import type { CallRate } from '../../gateway/core/limits/call-turns.ts'
import { deletionTurnMessage } from '../../gateway/core/policy/traffic-messages.ts'
import { longestWaitMs, takeTurnIn } from '../../gateway/request/calls/call-turn.ts'
import { type Limited, refuseLimited, type Unknown } from '../../gateway/request/calls/upstream-reader.ts'
import { MAX_DELETIONS } from '../../gateway/state/clusters.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { CallLimitError } from '../../kube/core/answers/call-errors.ts'
import {
  AUDIT_DRY_RUN,
  AUDIT_REJECTED_BY,
  type ProtectionCause,
  type ProtectionGate,
  type ProtectionRequest,
  type ProtectionVerdict,
} from '../api/protection.ts'
import { unansweredVerdict } from '../core/ledger/verdicts.ts'
import { meansNotDeleted } from '../core/requests/deletion-answer.ts'
import { type AskedDeletion, type Deletion, keepBody } from './deletion.ts'

/** Annotation names as kube-apiserver gives them to the webhook. */
const AUDIT_PREFIX = 'podseidon.kubewharf.io/'
/** policy/v1 DisruptionBudgetCause: tells clients that the eviction is refused temporarily. */
const DISRUPTION_BUDGET = 'DisruptionBudget'

/** Evaluation failed: the failure policy decides about the deletion. */
export function errorVerdict(message: string): ProtectionVerdict {
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

/** Used by a gateway without a ledger. */
export const NO_GATE: ProtectionGate = {
  covers: () => true,
  review: (requests: readonly ProtectionRequest[]) =>
    Promise.resolve(
      requests.map((request) =>
        unansweredVerdict(request, 'this gateway has no pod protection: the deletion cannot be evaluated'),
      ),
    ),
  reviewScaleDown: () => Promise.resolve({ protectors: [], unknown: 'this gateway has no pod protection' }),
  release: () => undefined,
}

/** Releases the reservation unless the pod may have been deleted. */
export function hold({ exchange, gate }: Deletion, { reservation }: ProtectionVerdict): void {
  if (reservation === undefined) return
  // Aborted meanwhile: nothing will be sent.
  if (exchange.phase === 'over') gate.release([reservation])
  else {
    exchange.onOutcome = (outcome) => {
      if (outcome === 'unsent' || (outcome !== 'unknown' && meansNotDeleted(outcome))) gate.release([reservation])
    }
  }
}

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

/** Builds the request to the ledger. */
export function requestOf(
  { decision, settings, cause }: Deletion,
  { criterion, dryRun }: Pick<AskedDeletion, 'criterion' | 'dryRun'>,
  pod: ProtectionRequest['pod'],
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

/**
 * Asks the ledger when the caller's turn comes, so that thousands of deletions by one user don't delay another's. A deletion without a
 * turn in time is refused, whatever the failure policy says.
 */
export async function reviewDeletions(
  deletion: Deletion,
  requests: readonly ProtectionRequest[],
): Promise<readonly ProtectionVerdict[]> {
  const { exchange, decision, gate, settings } = deletion
  const { gw, charge } = exchange
  try {
    const done = await takeTurnIn(gw, decision.live.deletions, charge, longestWaitMs(settings.timeoutMs), {
      rate: () => UNLIMITED,
      message: (_, seconds) => deletionTurnMessage(decision.cluster.name, charge.source, MAX_DELETIONS, seconds),
    })
    return await gate.review(requests).finally(done)
  } catch (error) {
    if (!(error instanceof CallLimitError)) throw error
    return requests.map((request) => notNow(request, error))
  }
}

const UNLIMITED: CallRate = { qps: 0, burst: 0 }

function notNow(request: ProtectionRequest, { message, retryAfterSeconds }: CallLimitError): ProtectionVerdict {
  const pass = unansweredVerdict(request, message)
  // Passes if no protector can refuse it.
  if (pass.admitted) return pass
  return { ...errorVerdict(message), status: 'RetryAdvised', retryAfterSeconds }
}
