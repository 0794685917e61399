// Cells that have been silent for too long, so that their pods do not count, and cells that will become stale unless their status is
// refreshed.

import type { CellStatus, PodProtector } from '../../../api/pod-protector/pod-protector.ts'
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

interface Held {
  readonly protector: PodProtector
}

/** Protectors with a cell that has become stale, or no longer is, since their status was written. */
export function staleChanged<T extends Held>(protectors: Iterable<T>, staleAfterMs: number, nowMicros: number): T[] {
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
export function agingProtectors<T extends Held>(
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

/** undefined = none, or none that can be read. */
function lastEventMicros(text: string | undefined): number | undefined {
  const micros = text === undefined ? Number.NaN : parseMicros(text)
  return Number.isNaN(micros) ? undefined : micros
}
