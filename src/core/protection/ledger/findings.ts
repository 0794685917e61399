// What a protector would say to deletions, without recording any: for whoever explains or foretells.

import type { CellStatus, PodProtector } from '../../../api/pod-protector/pod-protector.ts'
import type { ProtectionRequest } from '../../../api/ports/protection.ts'
import { limitsOf } from '../history/limits.ts'
import { criterionOf, evaluateDeletion } from '../quota/evaluate.ts'
import type { QuotaPod } from '../quota/quota.ts'
import type { ProtectionSettings } from '../requests/protection-settings.ts'
import { applyOperations, type HistoryOperation, type OperationResult } from './history.ts'
import type { Finding } from './verdicts.ts'

/** A PodProtector as it is known. */
export interface KnownProtector {
  /** `namespace/name`. */
  readonly key: string
  readonly protector: PodProtector
}

/**
 * What a protector says to deletions that come together, those before others first.
 * @returns in their order
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
  // Of a batch the last one is taken first.
  const { results } = applyOperations(counted, operations.toReversed(), limits, nowMs * 1000)
  return evaluated.map(({ evaluation }, at) => {
    const { result, count, lag, required } = results[evaluated.length - 1 - at] ?? NOTHING_ASKED
    const young = evaluation.type === 'record' || (evaluation.pod.young === true && result === 'AlreadyUnhealthy')
    const said = young ? 'Recorded' : result === 'Done' ? 'Ok' : result
    return { protector: key, result: said, count, lag, required, maxConcurrentLag: limits.maxConcurrentLag }
  })
}

const NOTHING_ASKED: OperationResult = { result: 'Ok', startTime: '', count: 0, lag: 0, required: 0 }

/** A pod that is only recorded asks nobody; its numbers are shown all the same. */
function recordedPod(request: ProtectionRequest): QuotaPod {
  const { scheduled, running, ready } = request.pod
  return { criterion: criterionOf(request), scheduled, running, ready, available: false }
}

/** Trusts the stale marks of the gateway, because its settings are not known here. */
function withoutStale(protector: PodProtector): PodProtector {
  const { status } = protector
  if (status === undefined) return protector
  const cells = status.cells.map((cell): CellStatus => (cell.stale === true ? { cellID: cell.cellID } : cell))
  return { ...protector, status: { ...status, cells } }
}
