// The sums of a PodProtector's status.

import type { CellStatus, PodProtectorStatus } from '../../../api/pod-protector/pod-protector.ts'
import { readCells, writeStatus } from '../history/cell-history.ts'
import type { HistoryLimits } from '../history/limits.ts'

/**
 * The status that these cells make: histories too long are joined, cells that went silent are marked, and all that count
 * are summed. What may be gone from the histories has to be gone before.
 * @param cells of any shape, untouched; see readBucket and readCells for what mistakes in them become
 * @param nowMicros microseconds since the epoch
 */
export function summarize(cells: readonly CellStatus[], limits: HistoryLimits, nowMicros: number): PodProtectorStatus {
  return writeStatus(readCells(cells, nowMicros).values(), limits, nowMicros)
}
