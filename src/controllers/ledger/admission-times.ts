// When deletions that others have let through were first known to the aggregator, by its own clock. Until when they may happen is
// counted from then on, so that it does not matter what the clocks of those others say.

import type { HistoryEntry } from '../../core/protection/history/entry.ts'
import type { CellSnapshot } from '../../core/protection/ledger/prune-history.ts'

export class AdmissionTimes {
  /** By protector, then by entry. */
  readonly #known = new Map<string, Known>()

  /**
   * For one aggregation of one protector: what is not asked for in it is forgotten.
   * @param nowMicros for what is new
   */
  of(protector: string, nowMicros: number): NonNullable<CellSnapshot['knownSince']> {
    const before = this.#known.get(protector)
    const next: Known = { entries: new Map(), stamps: new Map() }
    return (entry) => {
      const since = sinceIn(before, entry) ?? nowMicros
      next.entries.set(keyOf(entry), since)
      next.stamps.set(entry.end, Math.max(since, next.stamps.get(entry.end) ?? since))
      this.#known.set(protector, next)
      return since
    }
  }

  forget(protector: string): void {
    this.#known.delete(protector)
  }
}

interface Known {
  /** By uid and time. */
  readonly entries: Map<string, number>
  /** By time alone: several that were joined have the time of the last of them. */
  readonly stamps: Map<number, number>
}

function sinceIn(before: Known | undefined, entry: HistoryEntry): number | undefined {
  const exact = before?.entries.get(keyOf(entry))
  return exact ?? (entry.uid === '' ? before?.stamps.get(entry.end) : undefined)
}

function keyOf({ uid, end }: HistoryEntry): string {
  return `${uid}/${end}`
}
