// Combines the findings of a pod's protectors into one verdict on its deletion, and words it. The first half of each sentence is
// Podseidon's, for runbooks and scripts that look for it; the numbers are ours.

import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import type { CellStatus, PodProtector } from '../../api/pod-protector.ts'
import type {
  HealthCriterion,
  ProtectionCause,
  ProtectionRequest,
  ProtectionStatus,
  ProtectionVerdict,
  Reservation,
  ReservationHold,
} from '../../api/protection.ts'
import { limitsOf } from '../history/cell-history.ts'
import { criterionOf, evaluateDeletion, freePass, type QuotaPod } from '../quota/quota.ts'
import { applyOperations, type HistoryOperation, type OperationResult } from './history.ts'

/** The result of one protector. */
export interface Finding {
  /** `namespace/name`. */
  readonly protector: string
  /** NoProtector: it was deleted in the meantime, or no longer selects the pod. */
  readonly result: Exclude<OperationResult['result'], 'Done'> | 'NoProtector' | 'Recorded'
  readonly count: number
  readonly lag: number
  readonly required: number
  /** 0 = none. */
  readonly maxConcurrentLag: number
}

type AdmittedVerdict = Exclude<ProtectionStatus, 'RetryAdvised' | 'Rejected' | 'Error'>

/** Retry-After of a temporary refusal. */
const RETRY_AFTER_SECONDS = 1

export function admitted(status: AdmittedVerdict, reservation?: Reservation): ProtectionVerdict {
  return {
    status,
    admitted: true,
    overridden: '',
    protector: '',
    message: '',
    causes: [],
    retryAfterSeconds: 0,
    freePass: false,
    reservation,
  }
}

/** The ledger can't decide. @param why a clause */
export function failedVerdict(request: ProtectionRequest, why: string, protector = ''): ProtectionVerdict {
  const message = errorMessage(why)
  return {
    ...admitted('Unmatched'),
    status: 'Error',
    admitted: false,
    overridden: overrideOf(request),
    protector,
    message,
  }
}

/** The ledger was unreachable: only deletions that no protector can refuse pass. @param why a clause */
export function unansweredVerdict(request: ProtectionRequest, why: string): ProtectionVerdict {
  const pass = freePass(request)
  return pass === undefined ? failedVerdict(request, why) : { ...admitted(pass), freePass: true }
}

/**
 * @param findings sorted by protector
 * @param reservation of a deletion that will pass
 */
export function verdictOf(
  request: ProtectionRequest,
  findings: readonly Finding[],
  reservation?: Reservation,
): ProtectionVerdict {
  const refusals = refusalsIn(request, findings)
  // A final refusal outranks a temporary one.
  const first = refusals.find(({ result }) => result === 'Denied') ?? refusals[0]
  if (first === undefined) return admitted(statusOf(findings), reservation)
  const denied = first.result === 'Denied'
  return {
    status: denied ? 'Rejected' : 'RetryAdvised',
    admitted: false,
    overridden: overrideOf(request),
    protector: first.protector,
    message: refusalMessage(first),
    causes: refusals.map(refusalCause),
    retryAfterSeconds: denied ? 0 : RETRY_AFTER_SECONDS,
    freePass: false,
    reservation,
  }
}

export function refuses({ result }: Pick<Finding, 'result'>): boolean {
  return result === 'Denied' || result === 'Retry'
}

/** Why a deletion passes although protectors refuse it; '' = it does not. */
export function overrideOf({ pod, shadow }: ProtectionRequest): ProtectionVerdict['overridden'] {
  if (pod.forceDelete) return 'force-delete'
  return shadow ? 'shadow' : ''
}

export function reservationOf(
  { cell, pod: { uid } }: ProtectionRequest,
  holds: readonly ReservationHold[],
): Reservation | undefined {
  return holds.length === 0 ? undefined : { cell, uid, holds }
}

function refusalsIn(request: ProtectionRequest, findings: readonly Finding[]): VerdictRefusal[] {
  const criterion = criterionOf(request)
  return findings.flatMap(({ result, ...numbers }) =>
    result === 'Denied' || result === 'Retry' ? [{ ...numbers, result, criterion }] : [],
  )
}

/** The status on which all remaining protectors agree. */
function statusOf(findings: readonly Finding[]): AdmittedVerdict {
  const said = findings.filter(({ result }) => result !== 'NoProtector')
  if (said.length === 0) return 'Unmatched'
  const all = (result: Finding['result']): boolean => said.every((finding) => finding.result === result)
  if (all('Recorded')) return 'StillUnavailable'
  if (all('AlreadyHasBucket')) return 'AlreadyAdmitted'
  return all('AlreadyUnhealthy') ? 'AlreadyUnhealthy' : 'AdmittedAll'
}

/** A PodProtector as it is known. */
export interface KnownProtector {
  /** `namespace/name`. */
  readonly key: string
  readonly protector: PodProtector
}

/**
 * What a protector would say to deletions submitted together, without recording any of them: for `explain` and forecasts.
 * @returns one finding per deletion, in order
 */
export function findingsOf(
  requests: readonly ProtectionRequest[],
  { key, protector }: KnownProtector,
  settings: ProtectionSettings,
  nowMs: number,
): Finding[] {
  const limits = limitsOf(protector, settings)
  const { clockSkewMs, reservationTimeoutMs } = settings
  const time = { earliestMs: nowMs - clockSkewMs, latestMs: nowMs + clockSkewMs }
  const evaluated = requests.map((request) => {
    const evaluation = evaluateDeletion(request, protector.spec.minReadySeconds, time, reservationTimeoutMs)
    return { request, evaluation, pod: evaluation.type === 'reserve' ? evaluation.pod : recordedPod(request) }
  })
  const operations = evaluated.map(({ request, pod }): HistoryOperation => {
    const { uid, name, resourceVersion } = request.pod
    return { type: 'reserve', cell: request.cell, uid, name, resourceVersion, pod, force: false }
  })
  const counted = settings.staleAfterMs > 0 ? protector : withoutStale(protector)
  // A batch is applied from its end.
  const { results } = applyOperations(counted, operations.toReversed(), limits, nowMs * 1000)
  return evaluated.map(({ evaluation }, at) => {
    const { result, count, lag, required } = results[evaluated.length - 1 - at] ?? NOTHING_ASKED
    const young = evaluation.type === 'record' || (evaluation.pod.young === true && result === 'AlreadyUnhealthy')
    const said = young ? 'Recorded' : result === 'Done' ? 'Ok' : result
    return { protector: key, result: said, count, lag, required, maxConcurrentLag: limits.maxConcurrentLag }
  })
}

const NOTHING_ASKED: OperationResult = { result: 'Ok', startTime: '', count: 0, lag: 0, required: 0 }

/** A pod that is only recorded needs no quota; its numbers are shown anyway. */
function recordedPod(request: ProtectionRequest): QuotaPod {
  const { scheduled, running, ready } = request.pod
  return { criterion: criterionOf(request), scheduled, running, ready, available: false }
}

/** Trusts the gateway's stale marks, because its settings are not known here. */
function withoutStale(protector: PodProtector): PodProtector {
  const { status } = protector
  if (status === undefined) return protector
  const cells = status.cells.map((cell): CellStatus => (cell.stale === true ? { cellID: cell.cellID } : cell))
  return { ...protector, status: { ...status, cells } }
}

/** The numbers behind a refusal. */
interface VerdictRefusal {
  /** `namespace/name` of the protector. */
  readonly protector: string
  /** Denied: too few would be left. Retry: may pass once earlier deletions are observed. */
  readonly result: 'Denied' | 'Retry'
  readonly criterion: HealthCriterion
  readonly required: number
  /** As counted by the aggregators. */
  readonly count: number
  /** AdmittedVerdict deletions not yet counted. */
  readonly lag: number
  /** Maximum number of these; 0 = no limit. */
  readonly maxConcurrentLag: number
}

/** `reason` of Events and of the causes of a Status. */
export const REFUSED_REASON = 'PodDeletionRefused'
export const DELAYED_REASON = 'PodDeletionDelayed'

function refusalMessage(refusal: VerdictRefusal): string {
  const { protector, result, criterion } = refusal
  if (result === 'Denied') {
    const replicas = criterion.toLowerCase()
    return `PodProtector ${protector} reports too few ${replicas} replicas to admit pod deletion: ${numbersOf(refusal)}`
  }
  const buffer = 'has full admission buffer and is temporarily unable to admit pod deletion'
  return `PodProtector ${protector} ${buffer}: ${numbersOf(refusal)}`
}

/** One per refusing protector, as in details.causes of a Status. */
function refusalCause(refusal: VerdictRefusal): ProtectionCause {
  const reason = refusal.result === 'Denied' ? REFUSED_REASON : DELAYED_REASON
  const message = `PodProtector ${refusal.protector}, ${refusal.criterion.toLowerCase()} pods: ${numbersOf(refusal)}`
  return { reason, message, field: 'spec.minAvailable' }
}

function numbersOf({ required, count, lag, maxConcurrentLag }: VerdictRefusal): string {
  const limit = maxConcurrentLag > 0 ? `, at most ${maxConcurrentLag} at a time` : ''
  return `${required} required, ${count} counted, ${lag} being deleted${limit}`
}

/** There is no verdict; `why` is a clause. */
function errorMessage(why: string): string {
  return `pod protection cannot tell whether the pod may be deleted: ${why}`
}

/**
 * Whether the response means that the pod was not deleted. 404, and 409 for a uid: another client deleted it, and it stays counted among the
 * deletions until the aggregator sees it. 408: a server that timed out may still have deleted it.
 */
export function meansNotDeleted(code: number): boolean {
  return code >= 400 && code < 500 && code !== 404 && code !== 408 && code !== 409
}
