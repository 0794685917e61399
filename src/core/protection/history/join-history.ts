// Keeps histories short: when a cell has more than compactThreshold buckets, the oldest are joined. No count is lost.

import { type HistoryEntry, joinEntries } from './entry.ts'
import { newerVersion } from './resource-version.ts'

/** How many uids the joined buckets of an object keep: 20,000 are 800 kB of at most 1.5 MB. The rest are only counted. */
export const MAX_JOINED_UIDS = 20_000

/**
 * Deletions further apart than this stay in separate buckets: a bucket is dropped some time after its last deletion, and one that
 * keeps absorbing new deletions would never be dropped.
 */
const MAX_SPAN_MICROS = 60 * 1_000_000
/** Joined buckets of one cell. When admitted deletions have not happened for this many minutes, precision no longer matters. */
const MAX_JOINED = 8

/**
 * @param entries of one cell, sorted by start
 * @param threshold how many may stay, the joined one included; at least 1. Up to 7 more stay when deletions span several minutes.
 * @param names how many uids the joined ones may keep together
 */
export function joinHistory(
  entries: readonly HistoryEntry[],
  threshold: number,
  names: number,
): readonly HistoryEntry[] {
  const excess = entries.length - threshold
  if (excess <= 0) return entries
  const groups: HistoryEntry[][] = []
  for (const entry of entries.slice(0, excess + 1)) {
    const last = groups.at(-1)
    const first = last?.[0]
    if (last === undefined || first === undefined || entry.end - first.start > MAX_SPAN_MICROS) groups.push([entry])
    else last.push(entry)
  }
  const old = groups.splice(0, Math.max(1, groups.length - MAX_JOINED + 1)).flat()
  return [...boundNames([old, ...groups].map(joined), names), ...entries.slice(excess + 1)]
}

function joined(group: readonly HistoryEntry[]): HistoryEntry {
  const [first] = group
  // One alone stays what it is.
  if (first !== undefined && group.length === 1) return first
  // If one version is not known, no snapshot can be proven as new as all of them.
  return joinEntries(group, group.map(({ version }) => version).reduce(newerVersion))
}

/** Keeps the newest uids, which are most likely to be asked for again. A single uid is always kept. */
function boundNames(entries: readonly HistoryEntry[], names: number): readonly HistoryEntry[] {
  let left = names
  return entries
    .toReversed()
    .map((entry) => {
      const { size } = entry.uids
      const kept = size <= 1 ? size : Math.min(size, left)
      left = Math.max(0, left - kept)
      return kept === size ? entry : { ...entry, uids: new Set(kept === 0 ? [] : [...entry.uids].slice(-kept)) }
    })
    .reverse()
}
