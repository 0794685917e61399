// When the aggregator first saw each admitted deletion, by its own clock. The deadline of a deletion is counted from
// then, so that the clocks of other replicas don't matter.

import type { HistoryEntry } from '../../core/history/entry.ts'
import type { CellSnapshot } from '../../core/ledger/prune-history.ts'

export class AdmissionTimes {
  /** By protector, then by entry. */
  readonly #known = new Map<string, Known>()

  /**
   * For one aggregation of one protector: drops entries that it doesn't ask for.
   * @param nowMicros the time for new entries
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
  /** By time alone: a joined entry has the time of its last deletion. */
  readonly stamps: Map<number, number>
}

function sinceIn(before: Known | undefined, entry: HistoryEntry): number | undefined {
  const exact = before?.entries.get(keyOf(entry))
  return exact ?? (entry.uid === '' ? before?.stamps.get(entry.end) : undefined)
}

function keyOf({ uid, end }: HistoryEntry): string {
  return `${uid}/${end}`
}
