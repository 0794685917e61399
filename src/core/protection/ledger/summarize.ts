// The sums of a PodProtector's status.

import type { CellStatus, PodProtectorStatus } from '../../../api/pod-protector/pod-protector.ts'
import { readCells, writeStatus } from '../history/cell-history.ts'
import type { HistoryLimits } from '../history/limits.ts'

/**
 * The status with these cells: joins histories that are too long, marks silent cells, and sums up the others. Prune the histories
 * before.
 * @param cells of any shape, not changed; for errors in them see readBucket and readCells
 * @param nowMicros microseconds since the epoch
 */
export function summarize(cells: readonly CellStatus[], limits: HistoryLimits, nowMicros: number): PodProtectorStatus {
  return writeStatus(readCells(cells, nowMicros).values(), limits, nowMicros)
}
