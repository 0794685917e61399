// What may go from an admission history: what a snapshot of the cell shows to have happened, or to happen no more. A clock
// alone proves neither.

import type { HistoryEntry } from '../history/entry.ts'
import { compareVersions } from '../history/resource-version.ts'

/**
 * `absent`: not in the cell; `terminating`: it is being deleted; `available`: it was counted as such; `alive`: it was not,
 * also for pods that the protector does not count at all.
 */
export type PodState = 'absent' | 'terminating' | 'available' | 'alive'

/** The pods of a cell at one moment; the one that was counted. */
export interface CellSnapshot {
  /** '' = not known. */
  readonly resourceVersion: string
  /** Microseconds: everything that was committed before has been seen. undefined = not known. */
  readonly streamTime: number | undefined
  /** Microseconds: when anything was heard of the cell last, be it that nothing has changed. Default: streamTime. */
  readonly heardAt?: number
  /**
   * Microseconds, by the same clock as `streamTime`: when the entry, as it is, was first known here; whatever it stands for was
   * let through before. Default: what it says itself, by the clock of whoever wrote it.
   */
  readonly knownSince?: (entry: HistoryEntry) => number
  /** Milliseconds by which the clocks of the cell's API servers are ahead of ours, for people. Default 0: none that is certain. */
  readonly skewMs?: number
  /** It was found that the cell itself has gone back to an older resourceVersion than was counted once. Default false. */
  readonly restored?: boolean
  stateOf(uid: string): PodState
}

export interface PrunedEntries {
  readonly entries: HistoryEntry[]
  /** Deletions that are gone. */
  readonly dropped: number
  /** Microseconds: something goes with a stream time after this, and nothing with an earlier one. undefined = nothing waits. */
  readonly streamTimeFrom: number | undefined
}

/**
 * Changes the entries.
 * @param entries of one cell
 * @param reservationTimeoutMs longest time from an admission until upstream has done it, or never will
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
    // It is deducted as it was counted. What was not counted must not become so, hence the bucket stays.
    entry.counter = state === 'available' ? 1 : 0
    return true
  }

  /** Several: those known by name go one by one, the rest together. */
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
      // As new as the pod, and the pod is not there: it is gone, and will not come back under this uid.
      if (order !== undefined && order >= 0) return true
      if (order === undefined && !this.#waits(admittedAt)) return true
    }
    // Upstream will not do it any more. Also what ends waiting for a resourceVersion that never comes.
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
