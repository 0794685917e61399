// Combines the findings of a pod's protectors into one verdict on its deletion.

import type {
  ProtectionRequest,
  ProtectionStatus,
  ProtectionVerdict,
  Reservation,
  ReservationHold,
} from '../../../api/ports/protection.ts'
import { criterionOf, freePass } from '../quota/evaluate.ts'
import { errorMessage, type Refusal, refusalCause, refusalMessage } from '../quota/protection-messages.ts'
import type { OperationResult } from './history.ts'

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

type Admitted = Exclude<ProtectionStatus, 'RetryAdvised' | 'Rejected' | 'Error'>

/** For a refusal that is only temporary. */
const RETRY_AFTER_SECONDS = 1

export function admitted(status: Admitted, reservation?: Reservation): ProtectionVerdict {
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

/** The ledger cannot tell. @param why a clause */
export function failed(request: ProtectionRequest, why: string, protector = ''): ProtectionVerdict {
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

/** The ledger could not be asked: only deletions that no protector can refuse pass. @param why a clause */
export function unanswered(request: ProtectionRequest, why: string): ProtectionVerdict {
  const pass = freePass(request)
  return pass === undefined ? failed(request, why) : { ...admitted(pass), freePass: true }
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

function refusalsIn(request: ProtectionRequest, findings: readonly Finding[]): Refusal[] {
  const criterion = criterionOf(request)
  return findings.flatMap(({ result, ...numbers }) =>
    result === 'Denied' || result === 'Retry' ? [{ ...numbers, result, criterion }] : [],
  )
}

/** The status on which all protectors that still exist agree. */
function statusOf(findings: readonly Finding[]): Admitted {
  const said = findings.filter(({ result }) => result !== 'NoProtector')
  if (said.length === 0) return 'Unmatched'
  const all = (result: Finding['result']): boolean => said.every((finding) => finding.result === result)
  if (all('Recorded')) return 'StillUnavailable'
  if (all('AlreadyHasBucket')) return 'AlreadyAdmitted'
  return all('AlreadyUnhealthy') ? 'AlreadyUnhealthy' : 'AdmittedAll'
}
