// Evaluates one deletion, first for the pod alone and then for one of its protectors, before the quota: in Podseidon's order
// (webhook/handler/handler.go), without its ways around the health criterion.

import type { CellTime } from '../../../gateway/core/clocks/cell-clock.ts'
import type { HealthCriterion, ProtectionRequest } from '../../api/protection.ts'
import type { QuotaPod } from './quota.ts'
import { readyAtMostMs } from './ready-time.ts'

/** Deletions that no protector can refuse. */
type FreePass =
  /** It is already being deleted; nothing is written. */
  | 'AlreadyTerminating'
  /** It is not ready: no available pod is lost, but it must not be counted on to become ready; recorded. */
  | 'AlreadyUnready'

type DeletionEvaluation =
  /** It will not become available before it is deleted: admitted and recorded. */
  | { readonly type: 'record' }
  | {
      readonly type: 'reserve'
      readonly pod: QuotaPod
      /** Milliseconds until it may become available; 0 = it is available, or time alone will not make it so. */
      readonly availableInMs: number
    }

/** The criterion of an Eviction outranks the pod's. */
export function criterionOf({ criterion, pod }: Pick<ProtectionRequest, 'criterion' | 'pod'>): HealthCriterion {
  return criterion ?? pod.criterion
}

/** Decided without any protector. */
export function freePass(request: Pick<ProtectionRequest, 'criterion' | 'pod'>): FreePass | undefined {
  const { pod } = request
  if (pod.terminating) return 'AlreadyTerminating'
  return !pod.ready && criterionOf(request) === 'Available' ? 'AlreadyUnready' : undefined
}

/**
 * For one protector, and a pod without a free pass. A pod counts as available unless it certainly is not.
 * @param time of the cell's API servers; undefined = unknown
 * @param withinMs maximum time from now until upstream has deleted it, or never will
 */
export function evaluateDeletion(
  request: Pick<ProtectionRequest, 'criterion' | 'pod'>,
  minReadySeconds: number,
  time: CellTime | undefined,
  withinMs: number,
): DeletionEvaluation {
  const { pod } = request
  const { scheduled, running, ready } = pod
  const criterion = criterionOf(request)
  const lackMs = minReadySeconds > 0 ? minReadySeconds * 1000 - readyAtMostMs(pod, time) : 0
  const available = ready && lackMs <= 0
  // It is ready, and will become available with time alone.
  const young = ready && !available
  if (criterion === 'Available' && (!ready || (young && lackMs > withinMs))) return { type: 'record' }
  const evaluated = { criterion, scheduled, running, ready, available, ...(young && { young }) }
  return { type: 'reserve', pod: evaluated, availableInMs: young ? lackMs : 0 }
}

/** The pod does not meet its own criterion: its deletion passes, but only if the pod is still as it was read. */
export function asksNoQuota(pod: QuotaPod): boolean {
  return !(pod[COUNTS[pod.criterion]] || (pod.criterion === 'Available' && pod.young === true))
}

const COUNTS = { Available: 'available', Ready: 'ready', Running: 'running', Scheduled: 'scheduled' } as const
