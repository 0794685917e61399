// Deletions that compete for the quota of one PodProtector, where they are admitted in the order of deletion: how long they wait for
// one another, and who goes first.

import type { PodProtector } from '../../api/pod-protector/pod-protector.ts'
import type { Clock } from '../../api/ports/ports.ts'
import type { ProtectionRequest } from '../../api/ports/protection.ts'
import { admissionOrder, type RankedPod, rankedPod } from '../../core/protection/competition/deletion-order.ts'
import { type CountedCells, rankedPods } from './better-victims.ts'

export interface Competing {
  readonly pod: RankedPod
  /** Monotonic milliseconds. */
  readonly deadlineMs: number
}

/** Who is answered later than this may well have gone: Podseidon admits by latest arrival for the same reason. */
const NEARLY_OVER_MS = 500
/** Of the time that a deletion has, one part in so many may go into waiting for others. */
const GATHER_PART = 4

/** @returns undefined = it is admitted by arrival */
export function competing(request: ProtectionRequest, deadlineMs: number): Competing | undefined {
  const pod = request.order === undefined ? undefined : rankedPod(request.cell, request.pod)
  return pod && { pod, deadlineMs }
}

/** How long the deletion waits for others, milliseconds: while the quota is scarce. */
export function gatherMs(
  { order, timeoutMs }: ProtectionRequest,
  { count, lag, required }: { readonly count: number; readonly lag: number; readonly required: number },
): number {
  if (order === undefined) return 0
  const scarce = count - lag - required <= Math.ceil((count * order.scarcePercent) / 100)
  return scarce ? Math.min(order.gatherMs, timeoutMs / GATHER_PART) : 0
}

/**
 * @param items by arrival
 * @returns as applyOperations takes them: the last one is admitted first
 */
export function inAdmissionOrder<T>(
  items: readonly T[],
  protector: PodProtector,
  cells: CountedCells,
  clock: Clock,
  competes: (item: T) => Competing | undefined,
): readonly T[] {
  const found = items.map(competes)
  const ranked = found.flatMap((one) => one?.pod ?? [])
  if (ranked.length < 2) return items
  const monotonicMs = clock.monotonic()
  const competitors = found.map((one) => {
    return { ranked: one?.pod, late: one !== undefined && one.deadlineMs - monotonicMs < NEARLY_OVER_MS }
  })
  const { spec, metadata } = protector
  const known = [...new Set(ranked.map(({ cell }) => cell))].flatMap((cell) => {
    const pods = cells.select(cell, metadata.namespace ?? '', spec.aggregationSelector ?? spec.selector)
    return pods === undefined ? [] : rankedPods(cell, pods)
  })
  const order = admissionOrder(competitors, known, clock.now())
  return order.toReversed().flatMap((index) => items[index] ?? [])
}
