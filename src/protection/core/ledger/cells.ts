// Cells whose pods do not count: those silent for too long (or about to be, unless their status is refreshed), and those removed on
// request.

import { type JsonObject, mapOf } from '../../../kit/api/json/json-object.ts'
import type { CellStatus, PodProtector, PodProtectorStatus } from '../../api/pod-protector.ts'
import { REMOVE_CELL_ONCE_ANNOTATION } from '../../api/protection.ts'
import { type HistoryLimits, limitsOf, summarize } from '../history/cell-history.ts'
import { parseMicros } from '../history/micro-time.ts'

/**
 * Whether the cell is stale: silent for longer than this, or without a known event time.
 * @param staleAfterMs 0 = never
 */
export function isStaleCell({ aggregation }: CellStatus, staleAfterMs: number, nowMicros: number): boolean {
  if (staleAfterMs <= 0) return false
  const last = lastEventMicros(aggregation?.lastEventTime)
  return last === undefined || nowMicros - last > staleAfterMs * 1000
}

interface WithProtector {
  readonly protector: PodProtector
}

/** Protectors with a cell that became stale, or recovered, since their status was written. */
export function staleChanged<T extends WithProtector>(
  protectors: Iterable<T>,
  staleAfterMs: number,
  nowMicros: number,
): T[] {
  const found: T[] = []
  for (const held of protectors) {
    const cells = held.protector.status?.cells ?? []
    if (cells.some((cell) => (cell.stale === true) !== isStaleCell(cell, staleAfterMs, nowMicros))) found.push(held)
  }
  return found
}

/**
 * Protectors whose status of the cell is older than a third of `staleAfter`, although the cell was heard from since.
 * @param heardMicros when the cell was last heard from
 */
export function agingProtectors<T extends WithProtector>(
  protectors: Iterable<T>,
  cell: string,
  staleAfterMs: number,
  heardMicros: number,
): T[] {
  const found: T[] = []
  for (const held of protectors) {
    const { aggregation } = held.protector.status?.cells?.find(({ cellID }) => cellID === cell) ?? {}
    if (aggregation === undefined) continue
    const last = lastEventMicros(aggregation.lastEventTime) ?? Number.NEGATIVE_INFINITY
    if (heardMicros - last > (staleAfterMs * 1000) / 3) found.push(held)
  }
  return found
}

/** undefined = absent or unreadable. */
function lastEventMicros(text: string | undefined): number | undefined {
  const micros = text === undefined ? Number.NaN : parseMicros(text)
  return Number.isNaN(micros) ? undefined : micros
}

/**
 * The cells listed, comma-separated, in annotation `podseidon.kubewharf.io/remove-cell-once`.
 * @returns undefined if no removal is requested
 */
export function cellsToRemove(protector: JsonObject): readonly string[] | undefined {
  const text = mapOf(protector, 'annotations')[REMOVE_CELL_ONCE_ANNOTATION]
  if (text === undefined) return undefined
  return text
    .split(',')
    .map((cell) => cell.trim())
    .filter((cell) => cell !== '')
}

/** The status without these cells, with new sums; undefined if it has none of them. */
export function statusWithoutCells(
  protector: PodProtector,
  cells: readonly string[],
  limits: HistoryLimits,
  nowMicros: number,
): PodProtectorStatus | undefined {
  const before = protector.status?.cells ?? []
  // A set: an annotation may list a hundred thousand.
  const removed = new Set(cells)
  const kept = before.filter(({ cellID }) => !removed.has(cellID))
  if (kept.length === before.length) return undefined
  return summarize(kept, limitsOf(protector, limits), nowMicros)
}

/** The protector without the annotation, which applies only once. */
export function withoutRemoveCells(protector: JsonObject): JsonObject {
  const { [REMOVE_CELL_ONCE_ANNOTATION]: _, ...annotations } = mapOf(protector, 'annotations')
  return { ...protector, metadata: { ...(protector['metadata'] as JsonObject), annotations } }
}
