// Evaluates deletions by the known state of a protector, before anything is written. Results equal those of applyOperations, but pods not
// yet in the histories are evaluated with sums computed once per version of the object, so that ten thousand refused deletions cost next to
// nothing.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { PodProtector } from '../../api/pod-protector.ts'
import type { HistoryLimits } from '../history/limits.ts'
import { passes, type QuotaState, QuotaTally, quotaState } from '../quota/quota.ts'
import { applyOperations, type OperationResult, type ReserveOperation } from './history.ts'

interface Sums {
  readonly state: QuotaState
  /** uids that are in any history. */
  readonly uids: ReadonlySet<string>
}

export class KnownQuotas {
  readonly #sums = new WeakMap<PodProtector, Sums>()

  /** Changes nothing. @returns a result for each operation, in order; startTime is meaningless */
  evaluate(
    protector: PodProtector,
    operations: readonly ReserveOperation[],
    limits: HistoryLimits,
    nowMicros: number,
  ): readonly OperationResult[] {
    // Staleness changes with time, so the sums can't be cached.
    if (limits.staleAfterMs > 0) return applyOperations(protector, operations, limits, nowMicros).results
    const { state, uids } = this.#sumsOf(protector, limits, nowMicros)
    const isSimple = operations.every(({ uid }) => !uids.has(uid)) && countUids(operations) === operations.length
    if (!isSimple) return applyOperations(protector, operations, limits, nowMicros).results
    const tally = new QuotaTally(state)
    const results = new Map<ReserveOperation, OperationResult>()
    for (const force of [true, false]) {
      for (const operation of operations.toReversed()) {
        if (operation.force !== force) continue
        const evaluation = tally.evaluate(operation.pod)
        if (force || passes(evaluation.result)) tally.take(operation.pod)
        results.set(operation, { ...evaluation, startTime: '' })
      }
    }
    return operations.flatMap((operation) => results.get(operation) ?? [])
  }

  #sumsOf(protector: PodProtector, limits: HistoryLimits, nowMicros: number): Sums {
    const known = this.#sums.get(protector)
    if (known !== undefined) return known
    const sums = { state: quotaState(protector, limits, nowMicros), uids: uidsIn(protector) }
    this.#sums.set(protector, sums)
    return sums
  }
}

function countUids(operations: readonly ReserveOperation[]): number {
  return new Set(operations.map(({ uid }) => uid)).size
}

const uidsOf = new WeakMap<PodProtector, ReadonlySet<string>>()

/** The pods in any history: their deletion was admitted. */
function uidsIn(protector: PodProtector): ReadonlySet<string> {
  const { status } = protector
  const known = uidsOf.get(protector)
  if (known !== undefined) return known
  const uids = new Set<string>()
  uidsOf.set(protector, uids)
  for (const { admissionHistory } of status?.cells ?? []) {
    const buckets: unknown = isRecord(admissionHistory) ? admissionHistory.buckets : undefined
    for (const bucket of Array.isArray(buckets) ? (buckets as unknown[]) : []) {
      if (!isRecord(bucket)) continue
      const { podUID, podUIDs } = bucket as { podUID?: unknown; podUIDs?: unknown }
      if (typeof podUID === 'string') uids.add(podUID)
      for (const uid of Array.isArray(podUIDs) ? (podUIDs as unknown[]) : []) if (typeof uid === 'string') uids.add(uid)
    }
  }
  return uids
}
