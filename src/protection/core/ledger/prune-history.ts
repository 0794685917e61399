// Which entries may be removed from an admission history: deletions that, by a snapshot of the cell, have happened or can no longer happen.
// A clock alone proves neither.

import type { HistoryEntry } from '../history/entry.ts'
import { compareVersions } from '../history/resource-version.ts'

/**
 * `absent`: not in the cell; `terminating`: being deleted; `available`: counted as available; `alive`: anything else, including pods that
 * the protector does not count.
 */
export type PodState = 'absent' | 'terminating' | 'available' | 'alive'

/** The pods of a cell at the moment of the count. */
export interface CellSnapshot {
  /** '' = unknown. */
  readonly resourceVersion: string
  /** Microseconds: everything committed before has been seen. undefined = unknown. */
  readonly streamTime: number | undefined
  /** Microseconds: when the cell was last heard from, even if nothing has changed. Default: streamTime. */
  readonly heardAt?: number
  /**
   * Microseconds, by the clock of `streamTime`: when this version of the entry was first seen here; its deletions were admitted before.
   * Default: the entry's own time, by its writer's clock.
   */
  readonly knownSince?: (entry: HistoryEntry) => number
  /** Milliseconds by which the clocks of the cell's API servers are ahead of ours, for people. Default 0: no proven skew. */
  readonly skewMs?: number
  /** The cell itself was restored to a resourceVersion older than one already counted. Default false. */
  readonly restored?: boolean
  stateOf(uid: string): PodState
}

interface PrunedEntries {
  readonly entries: HistoryEntry[]
  /** Number of removed deletions. */
  readonly dropped: number
  /** Microseconds: the next entry can be removed once stream time has passed this. undefined = none is waiting. */
  readonly streamTimeFrom: number | undefined
}

/**
 * Modifies the entries.
 * @param entries of one cell
 * @param reservationTimeoutMs maximum time from an admission until upstream has deleted the pod or never will
 */
export function pruneEntries(
  entries: readonly HistoryEntry[],
  snapshot: CellSnapshot,
  reservationTimeoutMs: number,
): PrunedEntries {
  const rules = new PruneRules(snapshot, Math.max(0, reservationTimeoutMs) * 1000)
  const kept = entries.filter((entry) => (entry.uid === '' ? rules.keepsSome(entry) : rules.keepsPod(entry)))
  return { entries: kept, dropped: rules.dropped, streamTimeFrom: rules.streamTimeFrom }
}

class PruneRules {
  dropped = 0
  streamTimeFrom: number | undefined
  readonly #snapshot: CellSnapshot
  readonly #streamTime: number
  readonly #timeoutMicros: number

  constructor(snapshot: CellSnapshot, timeoutMicros: number) {
    this.#snapshot = snapshot
    this.#streamTime = snapshot.streamTime ?? Number.NEGATIVE_INFINITY
    this.#timeoutMicros = timeoutMicros
  }

  keepsPod(entry: HistoryEntry): boolean {
    const state = this.#snapshot.stateOf(entry.uid)
    if (this.#isOver(state, this.#knownSince(entry), entry.version)) {
      this.dropped += 1
      return false
    }
    // Deducted only if it was counted. A pod that was not counted keeps its bucket, in case it becomes available.
    entry.counter = state === 'available' ? 1 : 0
    return true
  }

  /** A joined entry: known uids are removed one by one, the rest together. */
  keepsSome(entry: HistoryEntry): boolean {
    const anonymous = entry.counter - entry.uids.size
    const since = this.#knownSince(entry)
    for (const uid of entry.uids) {
      if (this.#isOver(this.#snapshot.stateOf(uid), since, entry.version)) entry.uids.delete(uid)
    }
    const left = anonymous > 0 && this.#waits(since + this.#timeoutMicros) ? anonymous : 0
    this.dropped += entry.counter - entry.uids.size - left
    entry.counter = entry.uids.size + left
    return entry.counter > 0
  }

  #isOver(state: PodState, admittedAt: number, version: string): boolean {
    if (state === 'terminating') return true
    if (state === 'absent') {
      const order = compareVersions(this.#snapshot.resourceVersion, version)
      // The snapshot is as new as the pod, and the pod is absent: it is gone for good, since uids are never reused.
      if (order !== undefined && order >= 0) return true
      if (order === undefined && !this.#waits(admittedAt)) return true
    }
    // After the timeout upstream will no longer delete it. This also ends the wait for a resourceVersion that never comes.
    return !this.#waits(admittedAt + this.#timeoutMicros)
  }

  #knownSince(entry: HistoryEntry): number {
    return this.#snapshot.knownSince?.(entry) ?? entry.end
  }

  /** Whether stream time has not passed the moment yet. */
  #waits(moment: number): boolean {
    if (this.#streamTime > moment) return false
    this.streamTimeFrom = Math.min(this.streamTimeFrom ?? Number.POSITIVE_INFINITY, moment)
    return true
  }
}
