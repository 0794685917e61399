// The cells of a status: parsed into the ledger's form, and written back with their sums, within the limits of the object.

import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import type {
  AdmissionBucket,
  Aggregation,
  CellStatus,
  PodProtector,
  PodProtectorStatus,
} from '../../api/pod-protector.ts'
import {
  boundedCount,
  entryTime,
  type HistoryEntry,
  joinHistory,
  MAX_COUNT,
  MAX_JOINED_UIDS,
  readBucket,
  writeBucket,
} from './entry.ts'
import { formatMicros } from './micro-time.ts'
import { newerVersion } from './resource-version.ts'

export interface CellHistory {
  readonly id: string
  /** Undefined until an aggregator has counted. */
  aggregation: CellCounts | undefined
  /** No pod is in more than one entry. */
  entries: HistoryEntry[]
}

export interface CellCounts {
  readonly total: number
  readonly available: number
  readonly ready: number
  readonly scheduled: number
  readonly running: number
  /** Microseconds; undefined = unknown. */
  readonly lastEvent: number | undefined
  /** resourceVersion of the cell when its pods were counted; '' = unknown. */
  readonly version: string
  /** Milliseconds by which the clocks of its API servers were ahead of the aggregator's; 0 = no proven skew. */
  readonly skewMs: number
}

/** Cells by id; entries without an id are skipped. If several cells share an id, the fewest available pods count. */
export function readCells(cells: unknown, nowMicros: number): Map<string, CellHistory> {
  const read = new Map<string, CellHistory>()
  for (const cell of Array.isArray(cells) ? cells : []) {
    if (!isRecord(cell) || typeof cell['cellID'] !== 'string') continue
    const { cellID: id } = cell
    const aggregation = readCounts(cell['aggregation'], nowMicros)
    const entries = bucketsOf(cell).map((bucket) => readBucket(bucket, nowMicros))
    const twin = read.get(id)
    if (twin === undefined) read.set(id, { id, aggregation, entries })
    else {
      twin.aggregation = fewest(twin.aggregation, aggregation)
      for (const entry of entries) twin.entries.push(entry)
    }
  }
  for (const cell of read.values()) cell.entries = withoutTwins(cell.entries)
  return read
}

/** A stale cell has been silent for too long: neither its pods nor deletions of them count. */
export function isStale(cell: CellHistory, limits: HistoryLimits, nowMicros: number): boolean {
  if (limits.staleAfterMs <= 0) return false
  const last = cell.aggregation?.lastEvent
  return last === undefined || nowMicros - last > limits.staleAfterMs * 1000
}

/** Joins histories that are too long, and sums up. Empty cells are left out. */
export function writeStatus(
  cells: Iterable<CellHistory>,
  limits: HistoryLimits,
  nowMicros: number,
): PodProtectorStatus {
  const known = [...cells].filter(({ aggregation, entries }) => aggregation !== undefined || entries.length > 0)
  const names = Math.floor(MAX_JOINED_UIDS / Math.max(1, known.length))
  const sums = { total: 0, available: 0, ready: 0, scheduled: 0, running: 0, deducted: 0 }
  let latencyMicros = 0
  const written: CellStatus[] = []
  for (const cell of known) {
    const stale = isStale(cell, limits, nowMicros)
    const entries = joinHistory(byStart(cell.entries), limits.compactThreshold, names)
    written.push(writeCell(cell, entries, stale))
    latencyMicros = Math.max(latencyMicros, (entries.at(-1)?.end ?? 0) - (cell.aggregation?.lastEvent ?? MAX_TIME))
    if (stale) continue
    sums.total += cell.aggregation?.total ?? 0
    sums.available += cell.aggregation?.available ?? 0
    sums.ready += cell.aggregation?.ready ?? 0
    sums.scheduled += cell.aggregation?.scheduled ?? 0
    sums.running += cell.aggregation?.running ?? 0
    for (const { counter } of entries) sums.deducted += counter
  }
  const summary = {
    totalReplicas: bounded(sums.total),
    aggregatedAvailableReplicas: bounded(sums.available),
    estimatedAvailableReplicas: bounded(sums.available - sums.deducted),
    maxLatencyMillis: Math.floor(latencyMicros / 1000),
    aggregatedReady: bounded(sums.ready),
    aggregatedScheduled: bounded(sums.scheduled),
    aggregatedRunning: bounded(sums.running),
  }
  return { cells: written, summary }
}

/** Later than any time: an unknown event time causes no latency. */
const MAX_TIME = Number.MAX_SAFE_INTEGER

function writeCell(cell: CellHistory, entries: readonly HistoryEntry[], stale: boolean): CellStatus {
  return {
    cellID: cell.id,
    ...(cell.aggregation === undefined ? {} : { aggregation: writeCounts(cell.aggregation) }),
    ...(entries.length === 0 ? {} : { admissionHistory: { buckets: entries.map(writeBucket) } }),
    ...(stale ? { stale } : {}),
  }
}

function writeCounts(counts: CellCounts): Aggregation {
  return {
    totalReplicas: counts.total,
    availableReplicas: counts.available,
    readyReplicas: counts.ready,
    scheduledReplicas: counts.scheduled,
    runningReplicas: counts.running,
    // An API server rejects null here.
    ...(counts.lastEvent === undefined ? {} : { lastEventTime: formatMicros(counts.lastEvent) }),
    ...(counts.version === '' ? {} : { resourceVersion: counts.version }),
    ...(counts.skewMs === 0 ? {} : { clockSkewMillis: counts.skewMs }),
  }
}

function readCounts(aggregation: unknown, nowMicros: number): CellCounts | undefined {
  if (!isRecord(aggregation)) return undefined
  return {
    total: boundedCount(aggregation['totalReplicas']) ?? 0,
    available: boundedCount(aggregation['availableReplicas']) ?? 0,
    ready: boundedCount(aggregation['readyReplicas']) ?? 0,
    scheduled: boundedCount(aggregation['scheduledReplicas']) ?? 0,
    running: boundedCount(aggregation['runningReplicas']) ?? 0,
    lastEvent: entryTime(aggregation['lastEventTime'], nowMicros),
    version: textOf(aggregation['resourceVersion']),
    skewMs: skewOf(aggregation['clockSkewMillis']),
  }
}

function skewOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) ? Math.max(-MAX_COUNT, Math.min(MAX_COUNT, value)) : 0
}

function bucketsOf(cell: Readonly<Record<string, unknown>>): readonly AdmissionBucket[] {
  const history = cell['admissionHistory']
  const buckets = isRecord(history) ? history['buckets'] : undefined
  return Array.isArray(buckets) ? buckets : []
}

function fewest(a: CellCounts | undefined, b: CellCounts | undefined): CellCounts | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.available < a.available ? b : a
}

/** One pod is one deletion, however often it is recorded. */
function withoutTwins(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const singles = new Map<string, HistoryEntry>()
  const kept: HistoryEntry[] = []
  for (const entry of entries) {
    const twin = entry.uid === '' ? undefined : singles.get(entry.uid)
    if (twin === undefined) {
      if (entry.uid !== '') singles.set(entry.uid, entry)
      kept.push(entry)
    } else mergeInto(twin, entry)
  }
  const named = new Set(singles.keys())
  for (const entry of kept) {
    for (const uid of entry.uids) {
      if (named.has(uid)) forgetJoined(entry, uid)
      else named.add(uid)
    }
  }
  return kept.filter(({ counter, uid }) => uid !== '' || counter > 0)
}

function mergeInto(entry: HistoryEntry, twin: HistoryEntry): void {
  entry.start = Math.max(entry.start, twin.start)
  entry.end = entry.start
  entry.counter = Math.max(entry.counter, twin.counter)
  entry.version = newerVersion(entry.version, twin.version)
}

/** Removes one pod from a joined entry. */
export function forgetJoined(entry: HistoryEntry, uid: string): void {
  if (entry.uids.delete(uid)) entry.counter -= 1
}

function byStart(entries: readonly HistoryEntry[]): readonly HistoryEntry[] {
  return entries.toSorted((a, b) => a.start - b.start)
}

function bounded(sum: number): number {
  return Math.min(MAX_COUNT, Math.max(-MAX_COUNT, sum))
}

/**
 * The status with these cells: joins histories that are too long, marks silent cells, and sums up the others. Prune the histories first.
 * @param cells of any shape, not modified; for errors in them see readBucket and readCells
 * @param nowMicros microseconds since the epoch
 */
export function summarize(cells: readonly CellStatus[], limits: HistoryLimits, nowMicros: number): PodProtectorStatus {
  return writeStatus(readCells(cells, nowMicros).values(), limits, nowMicros)
}

/** How long histories get, and how fast they are processed: settings of the process that an object may override. */
export interface HistoryLimits {
  /** Deletions, over all cells, that may be admitted but not yet observed. 0 = no limit. */
  readonly maxConcurrentLag: number
  /** Buckets per cell before the oldest are joined; 1 to 5,000. */
  readonly compactThreshold: number
  /** Milliseconds from a pod event until it is counted. */
  readonly aggregationRateMs: number
  /** Milliseconds of silence after which a cell's pods no longer count. 0 = never. */
  readonly staleAfterMs: number
}

/** A bucket takes some 200 bytes, and an object at most 1.5 MB: a full one could record no more deletions. */
const MAX_BUCKETS = 5_000

/** The limits of one object. Invalid numbers are clamped: an error in one object must not stop anything. */
export function limitsOf(protector: PodProtector, defaults: HistoryLimits): HistoryLimits {
  const config = protector.spec?.admissionHistoryConfig
  return {
    maxConcurrentLag: atLeast(0, config?.maxConcurrentLag, defaults.maxConcurrentLag),
    compactThreshold: Math.min(MAX_BUCKETS, atLeast(1, config?.compactThreshold, defaults.compactThreshold)),
    aggregationRateMs: atLeast(0, config?.aggregationRateMillis, defaults.aggregationRateMs),
    staleAfterMs: atLeast(0, undefined, defaults.staleAfterMs),
  }
}

function atLeast(least: number, override: unknown, preset: number): number {
  const value = typeof override === 'number' && Number.isFinite(override) ? override : preset
  return Math.max(least, Math.trunc(value))
}
