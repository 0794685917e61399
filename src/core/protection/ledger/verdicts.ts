// From what the protectors of a pod say to the one verdict about its deletion.

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

/** What one protector says. */
export interface Finding {
  /** `namespace/name`. */
  readonly protector: string
  /** NoProtector: it has gone meanwhile, or selects the pod no more. */
  readonly result: Exclude<OperationResult['result'], 'Done'> | 'NoProtector' | 'Recorded'
  readonly count: number
  readonly lag: number
  readonly required: number
  /** 0 = none. */
  readonly maxConcurrentLag: number
}

type Admitted = Exclude<ProtectionStatus, 'RetryAdvised' | 'Rejected' | 'Error'>

/** When a refusal is only for now. */
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

/** Nobody could be asked: only what nobody can refuse passes. @param why a clause */
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
  // A firm refusal says more than one that is only for now.
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

/** Why a deletion passes although it is refused. */
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

/** What all have in common, of those that said anything. */
function statusOf(findings: readonly Finding[]): Admitted {
  const said = findings.filter(({ result }) => result !== 'NoProtector')
  if (said.length === 0) return 'Unmatched'
  const all = (result: Finding['result']): boolean => said.every((finding) => finding.result === result)
  if (all('Recorded')) return 'StillUnavailable'
  if (all('AlreadyHasBucket')) return 'AlreadyAdmitted'
  return all('AlreadyUnhealthy') ? 'AlreadyUnhealthy' : 'AdmittedAll'
}
