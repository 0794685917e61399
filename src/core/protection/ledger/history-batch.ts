// A batch of operations on the histories of one protector.

import { isRecord } from '../../../api/kube/object-shape.ts'
import type { PodProtector, PodProtectorStatus } from '../../../api/pod-protector/pod-protector.ts'
import { type CellHistory, forgetJoined, isStale, readCells, writeStatus } from '../history/cell-history.ts'
import { deletionsOf, type HistoryEntry } from '../history/entry.ts'
import type { HistoryLimits } from '../history/limits.ts'
import { formatMicros, parseMicros } from '../history/micro-time.ts'
import { compareVersions } from '../history/resource-version.ts'
import { type OwnReservation, passes, type QuotaPod, QuotaTally, quotaOfCells } from '../quota/quota.ts'
import type { OperationResult, PodOperation, ReleaseOperation, ReserveOperation } from './history-operation.ts'

export const DONE: OperationResult = { result: 'Done', startTime: '', count: 0, lag: 0, required: 0 }

/** The histories of one protector while a batch is worked off. */
export class HistoryBatch {
  readonly #protector: PodProtector
  readonly #limits: HistoryLimits
  readonly #nowMicros: number
  readonly #cells: Map<string, CellHistory>
  /** Of each cell that was asked for: where a pod is. */
  readonly #places = new Map<string, Map<string, HistoryEntry>>()
  /** What was recorded in this batch, and as what it was taken. */
  readonly #taken = new Map<HistoryEntry, QuotaPod>()
  #tally: QuotaTally | undefined
  #changed = false

  constructor(protector: PodProtector, limits: HistoryLimits, nowMicros: number) {
    this.#protector = protector
    this.#limits = limits
    this.#nowMicros = nowMicros
    this.#cells = readCells(protector.status?.cells, nowMicros)
  }

  /** Only what is still as it was written: who admitted the pod since relies on it. */
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
    // What is recorded already stands for as much or more.
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
    // Pods of a stale cell are not counted: nothing is taken from what is.
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

  /** Admitted once more: nobody who admitted it before may take it back, and its time runs anew. */
  #renew(own: HistoryEntry, operation: ReserveOperation, stale: boolean): void {
    this.#changed = true
    if (own.uid === '') {
      // Of its own again; it counted 1 among the others, and still does.
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
    // When it was recorded it took nothing. It is available now, and may have been counted as such.
    own.counter = 1
    if (!stale) this.#tally?.raise()
  }

  /** What the quota knows of the pod already. In a stale cell: the deletions of this cell, which it does not know. */
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

  /** A cell that stays empty is not written. */
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

/** The newer of what is known. */
function newest(a: string, b: string): string {
  const order = compareVersions(a, b)
  if (order === undefined) return compareVersions(b, b) === undefined ? a : b
  return order >= 0 ? a : b
}

/** Which cells are stale: people have to see it, even when no more than refusals come of it. */
function marksOf(status: PodProtectorStatus | undefined): string {
  const cells: unknown = status?.cells
  const stale = Array.isArray(cells) ? cells.filter((cell) => isRecord(cell) && cell['stale'] === true) : []
  return JSON.stringify(stale.map(({ cellID }) => cellID))
}
