// What people read when a deletion is refused. The first half of each sentence is Podseidon's, for runbooks and scripts that
// look for it; the numbers are ours.

import type { HealthCriterion, ProtectionCause } from '../../../api/ports/protection.ts'

/** By which numbers a protector refuses. */
export interface Refusal {
  /** `namespace/name` of the protector. */
  readonly protector: string
  /** Denied: too few would be left. Retry: may pass once earlier deletions are seen to have happened. */
  readonly result: 'Denied' | 'Retry'
  readonly criterion: HealthCriterion
  readonly required: number
  /** As the aggregators counted them. */
  readonly count: number
  /** Admitted deletions that are not yet counted. */
  readonly lag: number
  /** How many of these are allowed at a time; 0 = no limit. */
  readonly maxConcurrentLag: number
}

/** `reason` of Events and of the causes of a Status. */
export const REFUSED_REASON = 'PodDeletionRefused'
export const DELAYED_REASON = 'PodDeletionDelayed'

export function refusalMessage(refusal: Refusal): string {
  const { protector, result, criterion } = refusal
  if (result === 'Denied') {
    const replicas = criterion.toLowerCase()
    return `PodProtector ${protector} reports too few ${replicas} replicas to admit pod deletion: ${numbersOf(refusal)}`
  }
  const buffer = 'has full admission buffer and is temporarily unable to admit pod deletion'
  return `PodProtector ${protector} ${buffer}: ${numbersOf(refusal)}`
}

/** One for each protector that refuses, as in details.causes of a Status. */
export function refusalCause(refusal: Refusal): ProtectionCause {
  const reason = refusal.result === 'Denied' ? REFUSED_REASON : DELAYED_REASON
  const message = `PodProtector ${refusal.protector}, ${refusal.criterion.toLowerCase()} pods: ${numbersOf(refusal)}`
  return { reason, message, field: 'spec.minAvailable' }
}

function numbersOf({ required, count, lag, maxConcurrentLag }: Refusal): string {
  const limit = maxConcurrentLag > 0 ? `, at most ${maxConcurrentLag} at a time` : ''
  return `${required} required, ${count} counted, ${lag} being deleted${limit}`
}

/** There is no verdict; `why` is a clause. */
export function errorMessage(why: string): string {
  return `pod protection cannot tell whether the pod may be deleted: ${why}`
}
