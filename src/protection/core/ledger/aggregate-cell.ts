// One aggregation: the counted pods of a cell become part of a protector's status, and deletions that have happened are removed from its
// history. Counts and history come from one snapshot, so that nothing is deducted twice or missed.

import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { PodProtector, PodProtectorStatus } from '../../api/pod-protector.ts'
import { type CellCounts, type HistoryLimits, readCells, writeStatus } from '../history/cell-history.ts'
import { deletionsOf, type HistoryEntry } from '../history/entry.ts'
import { compareVersions } from '../history/resource-version.ts'
import type { PodCounts } from '../quota/pod-facts.ts'
import { type CellSnapshot, pruneEntries } from './prune-history.ts'

export interface AggregatedCell {
  readonly status: PodProtectorStatus
  /** Whether `status` must be written: something is new, or the cell must not become stale. */
  readonly changed: boolean
  /** Removing a deletion may need a stream time. */
  readonly needsStreamTime: boolean
  /** Microseconds: the earliest useful stream time. undefined = none is needed. */
  readonly streamTimeFrom: number | undefined
  /** Deletions of this cell that are still in the history. */
  readonly kept: number
  /** A newer snapshot was already counted: nothing is written. */
  readonly outdated: boolean
}

/**
 * @param protector as currently stored: at least as new as the snapshot
 * @param counts of the pods that the protector counts, by the snapshot
 * @param snapshot its `available` must refer to the same pods as `counts.available`
 */
export function aggregateCell(
  protector: PodProtector,
  cell: string,
  counts: PodCounts,
  snapshot: CellSnapshot,
  limits: HistoryLimits,
  reservationTimeoutMs: number,
  nowMicros: number,
): AggregatedCell {
  const cells = readCells(protector.status?.cells, nowMicros)
  const known = cells.get(cell)
  const before = known?.aggregation
  const history = known ?? { id: cell, aggregation: undefined, entries: [] }
  // Deletions removed by a newer snapshot would be counted again.
  if (isOlder(before, snapshot) && snapshot.restored !== true) {
    const status = writeStatus(cells.values(), limits, nowMicros)
    const kept = countDeletions(history.entries)
    return { status, changed: false, needsStreamTime: false, streamTimeFrom: undefined, kept, outdated: true }
  }
  const { entries, streamTimeFrom } = pruneEntries(history.entries, snapshot, reservationTimeoutMs)
  history.entries = entries
  const { version: oldVersion = '', lastEvent: oldEvent, skewMs: oldSkewMs = 0 } = before ?? {}
  history.aggregation = { ...countsOf(counts), version: oldVersion, lastEvent: oldEvent, skewMs: oldSkewMs }
  cells.set(cell, history)
  const same = sameJson(writeStatus(cells.values(), limits, nowMicros), protector.status)
  const lastEvent = lastEventOf(before, snapshot, nowMicros)
  const goesBack = isOlder(before, snapshot)
  const changed = !same || goesBack || before === undefined || isRefreshDue(before, lastEvent, limits, nowMicros)
  const version = snapshot.resourceVersion === '' ? oldVersion : snapshot.resourceVersion
  const { skewMs = 0 } = snapshot
  if (changed) history.aggregation = { ...history.aggregation, version, lastEvent, skewMs }
  const status = writeStatus(cells.values(), limits, nowMicros)
  const kept = countDeletions(entries)
  return { status, changed, needsStreamTime: streamTimeFrom !== undefined, streamTimeFrom, kept, outdated: false }
}

function isOlder(before: CellCounts | undefined, snapshot: CellSnapshot): boolean {
  return (compareVersions(snapshot.resourceVersion, before?.version ?? '') ?? 0) < 0
}

function countsOf({
  total,
  available,
  ready,
  scheduled,
  running,
}: PodCounts): Omit<CellCounts, 'version' | 'lastEvent' | 'skewMs'> {
  return { total, available, ready, scheduled, running }
}

/** When the cell was last heard from; never goes back, or an old snapshot would look fresher than it is. */
function lastEventOf(before: CellCounts | undefined, snapshot: CellSnapshot, nowMicros: number): number {
  const heard = snapshot.heardAt ?? snapshot.streamTime ?? nowMicros
  return Math.max(before?.lastEvent ?? heard, heard)
}

/** Others consider the cell alive only as long as its status is refreshed. */
function isRefreshDue(before: CellCounts, lastEvent: number, limits: HistoryLimits, nowMicros: number): boolean {
  if (limits.staleAfterMs <= 0) return false
  const last = before.lastEvent
  if (last === undefined) return true
  return lastEvent > last && nowMicros - last > (limits.staleAfterMs * 1000) / 3
}

function countDeletions(entries: readonly HistoryEntry[]): number {
  return entries.reduce((sum, entry) => sum + deletionsOf(entry), 0)
}
