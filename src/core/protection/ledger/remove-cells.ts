// Removal of cells on request: annotation `podseidon.kubewharf.io/remove-cell-once` of a PodProtector, names separated by commas.

import type { JsonObject } from '../../../api/kube/json-object.ts'
import { mapOf } from '../../../api/kube/json-object.ts'
import type { PodProtector, PodProtectorStatus } from '../../../api/pod-protector/pod-protector.ts'
import { REMOVE_CELL_ONCE_ANNOTATION } from '../../../api/ports/protection.ts'
import { type HistoryLimits, limitsOf } from '../history/limits.ts'
import { summarize } from './summarize.ts'

/** undefined = not requested. */
export function cellsToRemove(protector: JsonObject): readonly string[] | undefined {
  const text = mapOf(protector, 'annotations')[REMOVE_CELL_ONCE_ANNOTATION]
  if (text === undefined) return undefined
  return text
    .split(',')
    .map((cell) => cell.trim())
    .filter((cell) => cell !== '')
}

/** The status without these cells, with new sums; undefined when it has none of them. */
export function statusWithoutCells(
  protector: PodProtector,
  cells: readonly string[],
  limits: HistoryLimits,
  nowMicros: number,
): PodProtectorStatus | undefined {
  const before = protector.status?.cells ?? []
  // A set: an annotation may name a hundred thousand.
  const removed = new Set(cells)
  const kept = before.filter(({ cellID }) => !removed.has(cellID))
  if (kept.length === before.length) return undefined
  return summarize(kept, limitsOf(protector, limits), nowMicros)
}

/** The protector without the annotation, which applies once. */
export function withoutRemoveCells(protector: JsonObject): JsonObject {
  const { [REMOVE_CELL_ONCE_ANNOTATION]: _, ...annotations } = mapOf(protector, 'annotations')
  return { ...protector, metadata: { ...(protector['metadata'] as JsonObject), annotations } }
}
