// Buckets of an admission history in the ledger's form. Any client may have written a status: unreadable values are corrected so that the
// deletion still counts, and what is written back is valid. Long histories are joined without losing a count.

import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import type { AdmissionBucket } from '../../api/pod-protector.ts'
import { DEFAULT_COUNTER } from '../../api/schema.ts'
import { formatMicros, parseMicros } from './micro-time.ts'
import { newerVersion } from './resource-version.ts'

/** Maximum of numeric status fields. */
export const MAX_COUNT: number = 2 ** 31 - 1
/** A time further ahead of the clock than this is bogus, and would be waited for forever. */
export const FUTURE_MICROS: number = 3600 * 1_000_000

export interface HistoryEntry {
  /** Microseconds since the epoch. */
  start: number
  /** When the last deletion was admitted; `start` for a single pod. */
  end: number
  /** '' = several pods, or an unknown one. */
  readonly uid: string
  readonly name: string
  /** '' = unknown. */
  version: string
  /** As in AdmissionBucket. For several pods never less than the size of `uids`. */
  counter: number
  /** The known uids of a joined entry. */
  readonly uids: Set<string>
}

/** @param nowMicros replaces impossible times, so that no entry is dropped too early or kept forever */
export function readBucket(bucket: unknown, nowMicros: number): HistoryEntry {
  const fields = isRecord(bucket) ? bucket : {}
  const uid = textOf(fields['podUID'])
  const start = entryTime(fields['startTime'], nowMicros) ?? nowMicros
  const version = textOf(fields['resourceVersion'])
  const name = textOf(fields['podName'])
  const counter = boundedCount(fields['counter']) ?? DEFAULT_COUNTER
  if (uid !== '') return { start, end: start, uid, name, version, counter: Math.min(1, counter), uids: new Set() }
  const uids = new Set(Array.isArray(fields['podUIDs']) ? fields['podUIDs'].map(textOf) : [])
  uids.delete('')
  const end = Math.max(start, entryTime(fields['endTime'], nowMicros) ?? start)
  return { start, end, uid, name: '', version, counter: Math.max(1, counter, uids.size), uids }
}

export function writeBucket(entry: HistoryEntry): AdmissionBucket {
  const { start, end, uid, name, version, counter, uids } = entry
  const startTime = formatMicros(start)
  const resourceVersion = version === '' ? {} : { resourceVersion: version }
  if (uid === '') {
    const podUIDs = uids.size === 0 ? {} : { podUIDs: [...uids] }
    return { startTime, endTime: formatMicros(end), counter, ...resourceVersion, ...podUIDs }
  }
  return {
    startTime,
    podUID: uid,
    ...(name === '' ? {} : { podName: name }),
    ...(counter === 1 ? {} : { counter }),
    ...resourceVersion,
  }
}

/** How many deletions it stands for, whether or not they take available pods. */
export function deletionsOf(entry: HistoryEntry): number {
  return Math.max(1, entry.counter)
}

/** Joins all into one entry. Each deletion counts 1, even if it took no available pod: which ones did is not kept. */
function joinEntries(entries: readonly HistoryEntry[], version: string): HistoryEntry {
  const uids = new Set<string>()
  let start = Number.POSITIVE_INFINITY
  let end = Number.NEGATIVE_INFINITY
  let counter = 0
  for (const entry of entries) {
    start = Math.min(start, entry.start)
    end = Math.max(end, entry.end)
    counter += deletionsOf(entry)
    if (entry.uid !== '') uids.add(entry.uid)
    for (const uid of entry.uids) uids.add(uid)
  }
  return { start, end, uid: '', name: '', version, counter: Math.min(counter, MAX_COUNT), uids }
}

/** A count within the bounds of the schema; undefined = not a count. */
export function boundedCount(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) return undefined
  return Math.min(value, MAX_COUNT)
}

/** @returns undefined if it is unreadable or far in the future */
export function entryTime(value: unknown, nowMicros: number): number | undefined {
  const micros = typeof value === 'string' ? parseMicros(value) : Number.NaN
  return Number.isNaN(micros) || micros > nowMicros + FUTURE_MICROS ? undefined : micros
}

/** Number of uids that the joined buckets of an object keep: 20,000 are 800 kB of at most 1.5 MB. The rest are only counted. */
export const MAX_JOINED_UIDS = 20_000

/**
 * Deletions further apart than this stay in separate buckets: a bucket is dropped some time after its last deletion, and one that keeps
 * absorbing new deletions would never be dropped.
 */
const MAX_SPAN_MICROS = 60 * 1_000_000
/** Joined buckets per cell. When admitted deletions have been outstanding for this many minutes, precision no longer matters. */
const MAX_JOINED = 8

/**
 * Keeps the history short: beyond `threshold` buckets, the oldest are joined.
 * @param entries of one cell, sorted by start
 * @param threshold how many may stay, including the joined one; at least 1. Up to 7 more stay if deletions span several minutes.
 * @param names number of uids that the joined ones may keep together
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
  // A single entry is left unchanged.
  if (first !== undefined && group.length === 1) return first
  // If one version is unknown, no snapshot can be proven as new as all of them.
  return joinEntries(group, group.map(({ version }) => version).reduce(newerVersion))
}

/** Keeps the newest uids, which are most likely to be looked up again. A single uid is always kept. */
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
