// The response of `/api/v1/top` (docs/top.md): the top names, each number with its error bound.

import { type AnsweredReads, mostAnswered, sumOfAnswered } from './answered-reads.ts'
import {
  BYTES,
  LATENCY_MS,
  LISTED_BYTES,
  REFUSED,
  REQUESTS,
  SORT_SUM,
  type Sort,
  TALLY_LENGTH,
  UNTIMED,
  UPSTREAM_MS,
} from './measures.ts'
import type { TopQuery } from './query.ts'
import { ROW_LENGTH, type Sketch, SketchSum } from './sketch.ts'
import type { TopSum } from './windows.ts'

/** Sums over some requests. */
export interface TopNumbers {
  readonly requests: number
  readonly refused: number
  /** Request and response bodies. */
  readonly bytes: number
  /** Bodies of LIST responses. */
  readonly listedBytes: number
  /** Total time until upstream's response head; without long-running requests. */
  readonly upstreamSeconds: number
}

interface ReportedCounts extends TopNumbers {
  /** Mean over `timedRequests`; 0 when there are none. */
  readonly latencySeconds: number
  /** Requests whose latency counts: all but long-running ones (watch, exec ...). */
  readonly timedRequests: number
}

export interface TopRow extends ReportedCounts {
  /** '' = the request had none: no user, cluster-scoped, or no known cluster. */
  readonly name: string
  /** How much each number may be too low; it is never too high. */
  readonly error: TopNumbers
}

export interface TopReport {
  readonly by: TopQuery['by']
  readonly sort: Sort
  readonly minutes: number
  /** '' = all clusters, or several. */
  readonly cluster: string
  /** Several that were chosen; absent = all, or `cluster`. */
  readonly clusters?: readonly string[]
  /** The time actually counted: less than the minutes at first, and up to a slot more. */
  readonly seconds: number
  readonly total: ReportedCounts
  readonly rows: readonly TopRow[]
  /** Upper bound for a name without a row. */
  readonly others: TopNumbers
  /** Reads that the gateway answered itself, by cluster; absent = no cluster has a cache. */
  readonly answered?: readonly AnsweredReads[]
}

/** @param clusters that were chosen; undefined = the query chooses none */
export function topReport(
  query: TopQuery,
  { sketch, total, seconds }: TopSum,
  clusters: readonly string[] | undefined,
): TopReport {
  const { by, sort, minutes, cluster, limit } = query
  const sorted = sketch.names.map((_, place) => place)
  const sortedBy = sort === 'latency' ? meanMs : (rows: Float64Array, at: number) => rows[at + SORT_SUM[sort]] ?? 0
  const value = (place: number): number => sortedBy(sketch.rows, place * ROW_LENGTH)
  const name = (place: number): string => sketch.names[place] ?? ''
  sorted.sort((a, b) => value(b) - value(a) || (name(a) < name(b) ? -1 : 1))
  const others = sketch.missing.slice()
  for (const place of sorted.slice(limit)) {
    const at = place * ROW_LENGTH
    for (let i = 0; i < TALLY_LENGTH; i++) {
      others[i] = Math.max(others[i] ?? 0, (sketch.rows[at + i] ?? 0) + (sketch.rows[at + TALLY_LENGTH + i] ?? 0))
    }
  }
  const rows = sorted.slice(0, limit).map((place) => rowOf(sketch, place))
  return {
    by,
    sort,
    minutes,
    cluster,
    ...(clusters !== undefined && { clusters }),
    seconds: rounded(seconds),
    total: countsOf(total, 0),
    rows,
    others: numbersOf(others, 0),
  }
}

/** Sums the reports of several replicas; each must contain all of its rows. The time is the longest one. */
export function sumOfReports(query: TopQuery, reports: readonly TopReport[]): TopReport {
  const sum = new SketchSum()
  const total = new Float64Array(TALLY_LENGTH)
  let seconds = 0
  for (const report of reports) {
    seconds = Math.max(seconds, report.seconds)
    for (const [i, number] of tallyOf(report.total).entries()) total[i] = (total[i] ?? 0) + number
    sum.add({
      names: report.rows.map(({ name }) => name),
      rows: Float64Array.from(report.rows.flatMap((row) => [...tallyOf(row), ...errorsOf(row.error)])),
      missing: Float64Array.from(errorsOf(report.others)),
    })
  }
  const chosen = new Set(reports.flatMap((report) => report.clusters ?? []))
  const clusters = query.choice === undefined ? undefined : [...chosen].sort()
  const answered = mostAnswered(sumOfAnswered(reports.flatMap((report) => report.answered ?? [])))
  return {
    ...topReport(query, { sketch: sum.sketch(), total, seconds }, clusters),
    ...(answered.length > 0 && { answered }),
  }
}

function rowOf({ names, rows }: Sketch, place: number): TopRow {
  const at = place * ROW_LENGTH
  return { name: names[place] ?? '', ...countsOf(rows, at), error: numbersOf(rows, at + TALLY_LENGTH) }
}

function numbersOf(tally: Float64Array, at: number): TopNumbers {
  return {
    requests: Math.ceil(tally[at + REQUESTS] ?? 0),
    refused: Math.ceil(tally[at + REFUSED] ?? 0),
    bytes: Math.ceil(tally[at + BYTES] ?? 0),
    listedBytes: Math.ceil(tally[at + LISTED_BYTES] ?? 0),
    upstreamSeconds: rounded((tally[at + UPSTREAM_MS] ?? 0) / 1000),
  }
}

function countsOf(tally: Float64Array, at: number): ReportedCounts {
  const timedRequests = Math.max(0, (tally[at + REQUESTS] ?? 0) - (tally[at + UNTIMED] ?? 0))
  return { ...numbersOf(tally, at), latencySeconds: rounded(meanMs(tally, at) / 1000), timedRequests }
}

function meanMs(tally: Float64Array, at: number): number {
  const timed = (tally[at + REQUESTS] ?? 0) - (tally[at + UNTIMED] ?? 0)
  return timed > 0 ? (tally[at + LATENCY_MS] ?? 0) / timed : 0
}

/** In the order of a tally. */
function tallyOf(counts: ReportedCounts): number[] {
  const tally = errorsOf(counts)
  tally[LATENCY_MS] = counts.latencySeconds * counts.timedRequests * 1000
  tally[UNTIMED] = counts.requests - counts.timedRequests
  return tally
}

function errorsOf(numbers: TopNumbers): number[] {
  const tally = new Array<number>(TALLY_LENGTH).fill(0)
  tally[REQUESTS] = numbers.requests
  tally[REFUSED] = numbers.refused
  tally[BYTES] = numbers.bytes
  tally[LISTED_BYTES] = numbers.listedBytes
  tally[UPSTREAM_MS] = numbers.upstreamSeconds * 1000
  return tally
}

/** Rounded to microseconds. */
function rounded(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6
}
