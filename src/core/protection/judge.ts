// What is to be done about one deletion, for the pod alone and for one of its protectors, before any number is looked at:
// Podseidon's order (webhook/handler/handler.go) without its ways around the health criterion.

import type { HealthCriterion, PodFacts, ProtectionRequest } from '../../api/protection.ts'
import type { QuotaPod } from './quota.ts'

/** What no protector can refuse. */
export type FreePass =
  /** It goes anyway; nothing is written. */
  | 'AlreadyTerminating'
  /** It is not ready: nothing is lost with it, but it must not be waited for; noted. */
  | 'AlreadyUnready'

export type Judgement =
  /** Not ready for long enough to count: let through, and noted. */
  { readonly type: 'note' } | { readonly type: 'reserve'; readonly pod: QuotaPod }

/** The criterion of an Eviction outranks the pod's. */
export function criterionOf({ criterion, pod }: Pick<ProtectionRequest, 'criterion' | 'pod'>): HealthCriterion {
  return criterion ?? pod.criterion
}

/** Known without any protector. */
export function freePass(request: Pick<ProtectionRequest, 'criterion' | 'pod'>): FreePass | undefined {
  const { pod } = request
  if (pod.terminating) return 'AlreadyTerminating'
  return !pod.ready && criterionOf(request) === 'Available' ? 'AlreadyUnready' : undefined
}

/**
 * For one protector, of a pod that has no free pass.
 * @param clockSkewMs a pod that lacks no more than this of minReadySeconds counts as available
 * @param nowMs wall clock
 */
export function judge(
  request: Pick<ProtectionRequest, 'criterion' | 'pod'>,
  minReadySeconds: number,
  clockSkewMs: number,
  nowMs: number,
): Judgement {
  const { pod } = request
  const criterion = criterionOf(request)
  const available = pod.ready && isLongEnough(pod, minReadySeconds, clockSkewMs, nowMs)
  // By any other criterion the pod counts although it is not available yet.
  if (criterion === 'Available' && !available) return { type: 'note' }
  const { scheduled, running, ready } = pod
  return { type: 'reserve', pod: { criterion, scheduled, running, ready, available } }
}

/** It does not meet its own criterion: it passes, and only as long as it is as it was read. */
export function asksNoQuota(pod: QuotaPod): boolean {
  return !pod[COUNTS[pod.criterion]]
}

const COUNTS = { Available: 'available', Ready: 'ready', Running: 'running', Scheduled: 'scheduled' } as const

function isLongEnough(pod: PodFacts, minReadySeconds: number, clockSkewMs: number, nowMs: number): boolean {
  if (minReadySeconds <= 0) return true
  // A clock that is ahead of ours makes no pod unready.
  const readyForMs = Math.max(0, nowMs - pod.readySinceMs)
  return readyForMs >= minReadySeconds * 1000 - clockSkewMs
}
