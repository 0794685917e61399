// Buckets of an admission history as the ledger computes with them. Anybody may have written a status: unreadable values are
// corrected so that the deletion still counts, and what is written back is valid.

import { isRecord, textOf } from '../../../api/kube/object-shape.ts'
import { DEFAULT_COUNTER } from '../../../api/pod-protector/names.ts'
import type { AdmissionBucket } from '../../../api/pod-protector/pod-protector.ts'
import { formatMicros, parseMicros } from './micro-time.ts'

/** The greatest number that fields of the status may have. */
export const MAX_COUNT: number = 2 ** 31 - 1
/** A time further ahead of the clock than this cannot be right, and would be waited for forever. */
export const FUTURE_MICROS: number = 3600 * 1_000_000

export interface HistoryEntry {
  /** Microseconds since the epoch. */
  start: number
  /** Of the last deletion; `start` for a single pod. */
  end: number
  /** '' = several pods, or an unknown one. */
  readonly uid: string
  readonly name: string
  /** '' = not known. */
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
  const start = timeOf(fields['startTime'], nowMicros) ?? nowMicros
  const version = textOf(fields['resourceVersion'])
  const name = textOf(fields['podName'])
  const counter = countOf(fields['counter']) ?? DEFAULT_COUNTER
  if (uid !== '') return { start, end: start, uid, name, version, counter: Math.min(1, counter), uids: new Set() }
  const uids = new Set(Array.isArray(fields['podUIDs']) ? fields['podUIDs'].map(textOf) : [])
  uids.delete('')
  const end = Math.max(start, timeOf(fields['endTime'], nowMicros) ?? start)
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
export function joinEntries(entries: readonly HistoryEntry[], version: string): HistoryEntry {
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
export function countOf(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) return undefined
  return Math.min(value, MAX_COUNT)
}

/** @returns undefined when it is unreadable or far in the future */
export function timeOf(value: unknown, nowMicros: number): number | undefined {
  const micros = typeof value === 'string' ? parseMicros(value) : Number.NaN
  return Number.isNaN(micros) || micros > nowMicros + FUTURE_MICROS ? undefined : micros
}
