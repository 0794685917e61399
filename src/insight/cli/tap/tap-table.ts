// A tap as a table with streaming rows: columns have a width from the start, and the last one takes the rest of the terminal.

import { fitWidth, printable, textWidth } from '../../../kit/core/text/printable.ts'
import type { TapEvent } from '../../core/tap/tap-event.ts'

interface Column {
  readonly title: string
  /** Characters; longer values are cut on a terminal, and otherwise shift the rest of the row. */
  readonly width: number
  /** Right-aligned, for numbers. */
  readonly right?: boolean
  readonly text: (event: TapEvent) => string
}

const TIME: Column = { title: 'TIME', width: 12, text: ({ time }) => time.slice(11, 23) }
const CLUSTER: Column = { title: 'CLUSTER', width: 12, text: ({ cluster }) => cluster || '-' }
const USER: Column = { title: 'USER', width: 28, text: userOf }
const VERB: Column = { title: 'VERB', width: 7, text: ({ verb }) => verb }
const OBJECT: Column = { title: 'RESOURCE', width: 34, text: objectOf }
const CODE: Column = { title: 'CODE', width: 4, right: true, text: codeOf }
const TOTAL: Column = { title: 'TOTAL', width: 7, right: true, text: totalOf }
const BYTES: Column = { title: 'BYTES', width: 6, right: true, text: ({ responseBytes }) => shortBytes(responseBytes) }
const DECISION: Column = { title: 'DECISION', width: 24, text: decisionOf }

const NARROW: readonly Column[] = [TIME, CLUSTER, USER, VERB, OBJECT, CODE, TOTAL, BYTES, DECISION]
const WIDE: readonly Column[] = [
  ...NARROW,
  { title: 'UPSTREAM', width: 8, right: true, text: ({ upstreamMs }) => shortTime(upstreamMs) },
  { title: 'TRIES', width: 5, right: true, text: ({ attempts }) => String(attempts) },
  { title: 'POLICY', width: 6, text: ({ policy, rule }) => (policy < 0 ? '-' : `${policy}/${rule}`) },
  { title: 'LIMIT', width: 12, text: ({ limit }) => limit || '-' },
  { title: 'ENDPOINT', width: 28, text: ({ endpoint }) => endpoint || '-' },
  { title: 'ADDRESS', width: 15, text: ({ address }) => address },
  { title: 'REPLICA', width: 14, text: ({ replica, thread }) => `${replica}/${thread}` },
  { title: 'AUDIT-ID', width: 36, text: ({ auditID }) => auditID },
  { title: 'QUERY', width: 20, text: ({ query }) => query || '-' },
  { title: 'USER-AGENT', width: 20, text: ({ userAgent }) => userAgent || '-' },
]
/** Dropped in this order if the terminal is too narrow: least important first. */
const OPTIONAL: readonly Column[] = [BYTES, CLUSTER, TOTAL, TIME, DECISION]
/** Columns are narrowed to this before any is dropped. */
const NARROWEST: ReadonlyMap<Column, number> = new Map([
  [USER, 14],
  [OBJECT, 20],
  [DECISION, 12],
])

export class TapTable {
  readonly #columns: readonly Column[]

  constructor(wide: boolean) {
    this.#columns = wide ? WIDE : NARROW
  }

  /** @param terminal its width; undefined = cut nothing */
  header(terminal: number | undefined): string {
    return this.#line(({ title }) => title, terminal)
  }

  row(event: TapEvent, terminal: number | undefined): string {
    return this.#line((column) => printable(column.text(event)), terminal)
  }

  #line(textOf: (column: Column) => string, terminal: number | undefined): string {
    const fitted = this.#columns === WIDE ? WIDE.map(whole) : fit(NARROW, terminal)
    const cells = fitted.map(({ column, width }, at) => {
      const text = terminal === undefined ? textOf(column) : fitWidth(textOf(column), width)
      const padding = ' '.repeat(Math.max(0, width - textWidth(text)))
      if (column.right) return padding + text
      return at === fitted.length - 1 ? text : text + padding
    })
    return `${cells.join('  ').trimEnd()}\n`
  }
}

interface Fitted {
  readonly column: Column
  readonly width: number
}

function whole(column: Column): Fitted {
  return { column, width: column.width }
}

/** The last column gets the rest; the others shrink, and are then dropped, before a row takes two lines. */
function fit(columns: readonly Column[], terminal: number | undefined): readonly Fitted[] {
  if (terminal === undefined) return columns.map(whole)
  let left = columns
  const gone = [...OPTIONAL]
  const least = (column: Column): number => NARROWEST.get(column) ?? column.width
  while (widthOf(left.map(least)) > terminal) {
    const next = gone.shift()
    if (next === undefined) break
    left = left.filter((column) => column !== next)
  }
  let spare = Math.max(0, terminal - widthOf(left.map(least)))
  return left.map((column, at) => {
    const extra = at === left.length - 1 ? spare : Math.min(spare, column.width - least(column))
    spare -= extra
    return { column, width: least(column) + extra }
  })
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 2 * (widths.length - 1))
}

function userOf({ user, impersonator }: TapEvent): string {
  const name = user || '-'
  return impersonator === '' ? name : `${name} (by ${impersonator})`
}

/** `deployments.apps/scale shop/web`, or a path. `shop/` is a namespace, `web` a name without one. */
function objectOf(event: TapEvent): string {
  const { resource, apiGroup, subresource, namespace, name, path } = event
  if (resource === '') return path || '-'
  const kind = `${resource}${apiGroup === '' ? '' : `.${apiGroup}`}${subresource === '' ? '' : `/${subresource}`}`
  const place = namespace === '' ? name : `${namespace}/${name}`
  return place === '' ? kind : `${kind} ${place}`
}

function codeOf({ phase, code }: TapEvent): string {
  return phase === 'started' || code === 0 ? '-' : String(code)
}

function totalOf({ phase, totalMs }: TapEvent): string {
  if (phase === 'started') return 'begins'
  return phase === 'responding' ? 'open' : shortTime(totalMs)
}

/** The gateway's decision, unless it simply forwarded the request. */
function decisionOf({ refusal, refusedBy, shadow, aborted, attempts, phase }: TapEvent): string {
  if (refusal !== '') return refusedBy === '' ? refusal : `${refusal} (${refusedBy})`
  if (shadow.length > 0) return `shadow: ${shadow.join(', ')}`
  if (aborted !== '') return `aborted by ${aborted}`
  if (attempts > 1) return `sent ${attempts} times`
  return phase === 'started' ? '' : 'forwarded'
}

/** `12ms`, `1.25s`, `3m5s`; `-` = unknown. */
export function shortTime(ms: number): string {
  if (ms < 0) return '-'
  if (ms < 10) return `${ms.toFixed(1)}ms`
  if (ms < 1000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)}s`
  const seconds = Math.round(ms / 1000)
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes}m${seconds % 60}s` : `${Math.floor(minutes / 60)}h${minutes % 60}m`
}

function shortBytes(bytes: number): string {
  if (bytes < 1000) return String(bytes)
  if (bytes < 999_500) return `${(bytes / 1000).toFixed(bytes < 9950 ? 1 : 0)}k`
  return bytes < 999.5e6 ? `${(bytes / 1e6).toFixed(1)}M` : `${(bytes / 1e9).toFixed(1)}G`
}
