// Admission histories: makes, renews and releases reservations, a batch at a time, on a copy of the status. The caller writes the
// result against the resourceVersion it was computed from.

import type { PodProtector, PodProtectorStatus } from '../../../api/pod-protector/pod-protector.ts'
import type { HistoryLimits } from '../history/limits.ts'
import { DONE, HistoryBatch } from './history-batch.ts'
import type { HistoryOperation, OperationResult } from './history-operation.ts'

export type {
  HistoryOperation,
  OperationResult,
  RecordOperation,
  ReserveOperation,
} from './history-operation.ts'

export interface AppliedOperations {
  readonly status: PodProtectorStatus
  /** Whether `status` has to be written. Admissions that were only refused change nothing. */
  readonly changed: boolean
  /** In the order of the operations. */
  readonly results: readonly OperationResult[]
}

/**
 * Applies one batch to the protector's status: releases, then records, then reservations. Of these, forced ones come first, then the
 * last submitted first.
 */
export function applyOperations(
  protector: PodProtector,
  operations: readonly HistoryOperation[],
  limits: HistoryLimits,
  nowMicros: number,
): AppliedOperations {
  const batch = new HistoryBatch(protector, limits, nowMicros)
  const results = operations.map(() => DONE)
  batch.release(operations.filter((operation) => operation.type === 'release'))
  for (const [index, operation] of operations.entries()) {
    if (operation.type === 'record') results[index] = batch.record(operation)
  }
  // Forced deletions happen in any case, so they count before the others are evaluated.
  for (const force of [true, false]) {
    for (const [index, operation] of [...operations.entries()].toReversed()) {
      if (operation.type === 'reserve' && operation.force === force) results[index] = batch.reserve(operation)
    }
  }
  return { ...batch.write(), results }
}
