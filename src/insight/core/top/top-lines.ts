// Formats a report of `portcullis top` as lines for a terminal of a given width.

import { listed } from '../../../gateway/core/choice/choose-clusters.ts'
import { fitWidth, printable, textWidth } from '../../../kit/core/text/printable.ts'
import { DIMENSIONS, type Dimension } from '../../../process/api/dimensions.ts'
import { answeredLine, isAnsweredReads } from './answered-reads.ts'
import type { TopNumbers, TopReport, TopRow } from './report.ts'

/** A report of all replicas. */
export interface TopAnswer extends TopReport {
  /** Replicas that did not answer. */
  readonly missing?: readonly string[]
}

/** @param columns width of the terminal; undefined = unlimited */
export function topLines(report: TopAnswer, columns?: number): string[] {
  const { rows, seconds, cluster } = report
  const cells = rows.map((row) => cellsOf(row, seconds))
  const answered = (report.answered ?? []).map((one) => answeredLine(one, bytesText))
  const lines = [titleOf(report), ...answered, '']
  for (const missing of report.missing ?? [])
    lines.push(`no answer from ${printable(missing)}: its requests are missing`)
  // A mistyped cluster name has no rows either.
  if (rows.length === 0) {
    lines.push(
      cluster === ''
        ? 'no requests'
        : 'no requests; is the name right? --by cluster, without --cluster, shows them all',
    )
  } else lines.push(...table([headOf(report), ...cells], columns))
  if (rows.some(({ error }) => Object.values(error).some((more) => more > 0))) {
    lines.push('', '(+N): the number may be up to N higher, because entries were evicted for lack of memory')
  }
  return columns === undefined ? lines : lines.map((line) => fitWidth(line, columns))
}

/** A line of the table; the name comes last, because it is the one that may be cut. */
type Cells = readonly string[]

function headOf({ by, sort }: TopReport): Cells {
  const sorted: Readonly<Record<string, string>> = {
    requests: 'REQUESTS',
    refused: 'REFUSED',
    bytes: 'BYTES',
    'listed-bytes': 'LISTED',
    latency: 'LATENCY',
    'upstream-seconds': 'UPSTREAM',
  }
  const columns = ['REQ/S', 'REQUESTS', 'REFUSED', 'BYTES', 'LISTED', 'LATENCY', 'UPSTREAM']
  return [...columns.map((column) => (column === sorted[sort] ? `${column}*` : column)), HEAD[by]]
}

const HEAD: Readonly<Record<Dimension, string>> = {
  user: 'USER',
  userAgent: 'USER-AGENT',
  resource: 'RESOURCE',
  verb: 'VERB',
  namespace: 'NAMESPACE',
  address: 'ADDRESS',
  cluster: 'CLUSTER',
}

function cellsOf(row: TopRow, seconds: number): Cells {
  const { error } = row
  return [
    (seconds > 0 ? row.requests / seconds : 0).toFixed(1),
    withError(row, error, 'requests', String),
    withError(row, error, 'refused', String),
    withError(row, error, 'bytes', bytesText),
    withError(row, error, 'listedBytes', bytesText),
    row.timedRequests === 0 ? '-' : secondsText(row.latencySeconds),
    withError(row, error, 'upstreamSeconds', secondsText),
    row.name === '' ? '<none>' : printable(row.name),
  ]
}

function withError(
  row: TopNumbers,
  error: TopNumbers,
  field: keyof TopNumbers,
  text: (value: number) => string,
): string {
  return error[field] > 0 ? `${text(row[field])} (+${text(error[field])})` : text(row[field])
}

function titleOf({ by, sort, seconds, cluster, clusters, total }: TopReport): string {
  const several = clusters && `clusters ${listed(clusters.map(printable))}`
  const where = several ?? (cluster === '' ? 'all clusters' : `cluster ${printable(cluster)}`)
  const rate = seconds > 0 ? (total.requests / seconds).toFixed(1) : '0.0'
  const sums = `${total.requests} requests (${rate}/s), ${total.refused} refused, ${bytesText(total.bytes)}`
  return `top ${by} by ${sort}, last ${Math.round(seconds)} s, ${where}: ${sums}`
}

function table(rows: readonly Cells[], columns: number | undefined): string[] {
  const widths: number[] = []
  for (const row of rows)
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, textWidth(cell))
  return rows.map((row) => {
    const numbers = row.slice(0, -1).map((cell, at) => cell.padStart(widths[at] ?? 0))
    const line = [...numbers, row.at(-1) ?? ''].join('  ')
    return columns === undefined ? line : fitWidth(line, columns)
  })
}

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < BINARY.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)}${BINARY[unit] ?? ''}`
}

function secondsText(seconds: number): string {
  if (seconds === 0) return '0s'
  if (seconds < 0.9995) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 2 : 0)}ms`
  return `${seconds < 100 ? seconds.toFixed(1) : Math.round(seconds)}s`
}

const NUMBERS: readonly (keyof TopNumbers)[] = ['requests', 'refused', 'bytes', 'listedBytes', 'upstreamSeconds']

/** Type guard for a JSON report of this version. */
export function isTopAnswer(value: unknown): value is TopAnswer {
  const { by, sort, cluster, clusters, rows, total, seconds, others, answered } = fieldsOf(value)
  return (
    DIMENSIONS.some((one) => one === by) &&
    typeof sort === 'string' &&
    typeof cluster === 'string' &&
    (clusters === undefined || (Array.isArray(clusters) && clusters.every((one) => typeof one === 'string'))) &&
    typeof seconds === 'number' &&
    isCounts(total) &&
    isNumbers(others) &&
    (answered === undefined || isAnsweredReads(answered)) &&
    Array.isArray(rows) &&
    rows.every((row) => typeof fieldsOf(row)['name'] === 'string' && isCounts(row) && isNumbers(fieldsOf(row)['error']))
  )
}

function isCounts(value: unknown): boolean {
  const { latencySeconds, timedRequests } = fieldsOf(value)
  return isNumbers(value) && typeof latencySeconds === 'number' && typeof timedRequests === 'number'
}

function isNumbers(value: unknown): boolean {
  const fields = fieldsOf(value)
  return NUMBERS.every((name) => typeof fields[name] === 'number')
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
