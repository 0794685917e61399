// Admission histories: makes, renews and releases reservations, a batch at a time, on a copy of the status. The caller writes the result
// against the resourceVersion it was computed from.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { PodProtector, PodProtectorStatus } from '../../api/pod-protector.ts'
import {
  type CellHistory,
  forgetJoined,
  type HistoryLimits,
  isStale,
  readCells,
  writeStatus,
} from '../history/cell-history.ts'
import { deletionsOf, type HistoryEntry } from '../history/entry.ts'
import { formatMicros, parseMicros } from '../history/micro-time.ts'
import { compareVersions } from '../history/resource-version.ts'
import {
  type OwnReservation,
  passes,
  type QuotaPod,
  type QuotaResult,
  type QuotaState,
  QuotaTally,
  quotaOfCells,
  quotaState,
} from '../quota/quota.ts'

interface AppliedOperations {
  readonly status: PodProtectorStatus
  /** Whether `status` must be written. A batch of refusals changes nothing. */
  readonly changed: boolean
  /** In the order of the operations. */
  readonly results: readonly OperationResult[]
}

/**
 * Applies one batch to the protector's status: releases, then records, then reservations. Among these, forced ones come first, then the
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

interface PodOperation {
  readonly cell: string
  readonly uid: string
  /** '' = not kept. */
  readonly name: string
  /** The version in which the pod was read; '' = unknown. */
  readonly resourceVersion: string
}

export interface ReserveOperation extends PodOperation {
  readonly type: 'reserve'
  readonly pod: QuotaPod
  /** The pod will be deleted whatever the result: always recorded. */
  readonly force: boolean
}

/** A deletion that takes no available pod as far as is known: recorded, so that it takes none later either. Never refused. */
export interface RecordOperation extends PodOperation {
  readonly type: 'record'
}

interface ReleaseOperation {
  readonly type: 'release'
  readonly cell: string
  readonly uid: string
  /** When the bucket was written; nothing is released if it has changed or is gone. */
  readonly startTime: string
}

export type HistoryOperation = ReserveOperation | RecordOperation | ReleaseOperation

export interface OperationResult {
  /** `AlreadyHasBucket`: admitted, and already recorded; `Done`: for records and releases. */
  readonly result: QuotaResult | 'AlreadyHasBucket' | 'Done'
  /** Identifies the bucket that this operation created; '' = none. */
  readonly startTime: string
  /** For messages: counted pods, */
  readonly count: number
  /** outstanding deletions among them, */
  readonly lag: number
  /** and how many pods must stay. All 0 for records and releases. */
  readonly required: number
}

const DONE: OperationResult = { result: 'Done', startTime: '', count: 0, lag: 0, required: 0 }

/** The histories of one protector while a batch is applied. */
class HistoryBatch {
  readonly #protector: PodProtector
  readonly #limits: HistoryLimits
  readonly #nowMicros: number
  readonly #cells: Map<string, CellHistory>
  /** By cell and uid: the entry that holds the pod. */
  readonly #places = new Map<string, Map<string, HistoryEntry>>()
  /** Entries made in this batch, with the pod as it was counted. */
  readonly #taken = new Map<HistoryEntry, QuotaPod>()
  #tally: QuotaTally | undefined
  #changed = false

  constructor(protector: PodProtector, limits: HistoryLimits, nowMicros: number) {
    this.#protector = protector
    this.#limits = limits
    this.#nowMicros = nowMicros
    this.#cells = readCells(protector.status?.cells, nowMicros)
  }

  /** Skips entries that have changed since: a later admission of the pod relies on them. */
  release(operations: readonly ReleaseOperation[]): void {
    const released = new Set<HistoryEntry>()
    for (const { cell, uid, startTime } of operations) {
      const places = this.#placesIn(cell)
      const entry = places.get(uid)
      if (entry?.uid !== uid || entry.start !== parseMicros(startTime)) continue
      places.delete(uid)
      released.add(entry)
    }
    if (released.size === 0) return
    this.#changed = true
    for (const history of this.#cells.values()) {
      history.entries = history.entries.filter((entry) => !released.has(entry))
    }
  }

  record(operation: PodOperation): OperationResult {
    // The existing entry counts at least as much.
    if (this.#placesIn(operation.cell).has(operation.uid)) return DONE
    return { ...DONE, startTime: formatMicros(this.#add(operation, 0).start) }
  }

  reserve(operation: ReserveOperation): OperationResult {
    const { cell, uid, pod, force } = operation
    this.#tally ??= this.#newTally()
    const stale = this.#isStale(cell)
    const own = this.#placesIn(cell).get(uid)
    const evaluation = this.#tally.evaluate(pod, this.#ownShare(cell, own, stale))
    const admitted = passes(evaluation.result)
    if (!admitted && !force) return { ...evaluation, startTime: '' }
    if (own !== undefined) {
      this.#renew(own, operation, stale)
      return { ...evaluation, result: admitted ? 'AlreadyHasBucket' : evaluation.result, startTime: '' }
    }
    const entry = this.#add(operation, pod.available ? 1 : 0)
    this.#taken.set(entry, pod)
    // Pods of a stale cell are not counted, so nothing is deducted.
    if (!stale) this.#tally.take(pod)
    return { ...evaluation, startTime: formatMicros(entry.start) }
  }

  write(): { readonly status: PodProtectorStatus; readonly changed: boolean } {
    const status = writeStatus(this.#cells.values(), this.#limits, this.#nowMicros)
    return { status, changed: this.#changed || marksOf(status) !== marksOf(this.#protector.status) }
  }

  #newTally(): QuotaTally {
    return new QuotaTally(quotaOfCells(this.#protector, this.#cells.values(), this.#limits, this.#nowMicros))
  }

  #add({ cell, uid, name, resourceVersion }: PodOperation, counter: number, start = this.#nowMicros): HistoryEntry {
    const entry = { start, end: start, uid, name, version: resourceVersion, counter, uids: new Set<string>() }
    this.#cellOf(cell).entries.push(entry)
    this.#placesIn(cell).set(uid, entry)
    this.#changed = true
    return entry
  }

  /** Admitted again: earlier admissions can no longer release it, and its timeout restarts. */
  #renew(own: HistoryEntry, operation: ReserveOperation, stale: boolean): void {
    this.#changed = true
    if (own.uid === '') {
      // Split off again; it counted 1 in the joined entry, and still does.
      forgetJoined(own, operation.uid)
      const history = this.#cellOf(operation.cell)
      if (own.counter === 0) history.entries = history.entries.filter((entry) => entry !== own)
      this.#add(operation, 1, Math.max(this.#nowMicros, own.end + 1))
      return
    }
    own.start = Math.max(this.#nowMicros, own.start + 1)
    own.end = own.start
    own.version = newest(own.version, operation.resourceVersion)
    if (own.counter > 0 || !operation.pod.available) return
    // When recorded it took no available pod. It is available now, and may have been counted as such.
    own.counter = 1
    if (!stale) this.#tally?.raise()
  }

  /** The part of the quota that comes from this pod. In a stale cell: the deletions of that cell, which the quota leaves out. */
  #ownShare(cell: string, own: HistoryEntry | undefined, stale: boolean): OwnReservation {
    const single = own === undefined ? 0 : 1
    if (stale) {
      const { entries } = this.#cellOf(cell)
      const limited = this.#limits.maxConcurrentLag > 0
      const deletions = limited ? entries.reduce((sum, entry) => sum + deletionsOf(entry), 0) : 0
      return { lagAvailable: 0, lagOthers: 0, remaining: single - deletions, taken: undefined }
    }
    if (own === undefined) return { lagAvailable: 0, lagOthers: 0, remaining: 0, taken: undefined }
    const taken = this.#taken.get(own)
    const deducted = own.uid === '' ? 1 : own.counter
    if (taken === undefined) return { lagAvailable: deducted, lagOthers: 1, remaining: 1, taken }
    return { lagAvailable: deducted - (taken.available ? 1 : 0), lagOthers: 0, remaining: 1, taken }
  }

  #isStale(cell: string): boolean {
    return isStale(this.#cellOf(cell), this.#limits, this.#nowMicros)
  }

  /** Creates the cell if needed; an empty one is not written. */
  #cellOf(cell: string): CellHistory {
    const known = this.#cells.get(cell)
    if (known !== undefined) return known
    const created: CellHistory = { id: cell, aggregation: undefined, entries: [] }
    this.#cells.set(cell, created)
    return created
  }

  #placesIn(cell: string): Map<string, HistoryEntry> {
    const known = this.#places.get(cell)
    if (known !== undefined) return known
    const places = new Map<string, HistoryEntry>()
    for (const entry of this.#cellOf(cell).entries) {
      if (entry.uid !== '') places.set(entry.uid, entry)
      for (const uid of entry.uids) places.set(uid, entry)
    }
    this.#places.set(cell, places)
    return places
  }
}

/** The newer of two versions, or the known one. */
function newest(a: string, b: string): string {
  const order = compareVersions(a, b)
  if (order === undefined) return compareVersions(b, b) === undefined ? a : b
  return order >= 0 ? a : b
}

/** Which cells are marked stale: a change is written even if the batch only refuses. */
function marksOf(status: PodProtectorStatus | undefined): string {
  const cells: unknown = status?.cells
  const stale = Array.isArray(cells) ? cells.filter((cell) => isRecord(cell) && cell['stale'] === true) : []
  return JSON.stringify(stale.map(({ cellID }) => cellID))
}

interface Sums {
  readonly state: QuotaState
  /** uids that are in any history. */
  readonly uids: ReadonlySet<string>
}

/**
 * Evaluates deletions by the known state of a protector, before anything is written. Results equal those of applyOperations, but pods not
 * yet in the histories are evaluated with sums computed once per version of the object, so that ten thousand refused deletions cost next to
 * nothing.
 */
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
