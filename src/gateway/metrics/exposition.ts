// The Prometheus text format, 0.0.4. Whatever has metrics adds them to one Exposition for each scrape; it puts them in order.

import { formatLabel } from '../core/cluster/metric-labels.ts'
import type { Metric } from './metric.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Adds what it has to a scrape. */
export type ExposeMetrics = (into: Exposition) => void | Promise<void>

/** The text of what all of them have. */
export async function textOf(...sources: readonly ExposeMetrics[]): Promise<string> {
  const exposition = new Exposition()
  await Promise.all(sources.map((expose) => expose(exposition)))
  return exposition.text()
}

/** Calls that come while a text is made get that text. */
export function sharedText(make: () => Promise<string>): () => Promise<string> {
  let running: Promise<string> | undefined
  return () => {
    running ??= make().finally(() => {
      running = undefined
    })
    return running
  }
}

/** Collects lines by metric, as the format requires. */
export class Exposition {
  readonly #lines = new Map<Metric, string[]>()

  /** Its name, type and help are shown whether or not there is a series of it. */
  declare(metric: Metric): void {
    this.#linesOf(metric)
  }

  /** `values`: those of its labels, in their order. */
  addMetric<Values extends readonly string[]>(metric: Metric<Values>, value: number, ...values: Values): void {
    const labels = metric.labels.map((name, index) => formatLabel(name, values[index] ?? ''))
    this.add(metric, labels.length === 0 ? '' : `{${labels}}`, value)
  }

  /** `labels` with its braces, or ''. `suffix` is `_bucket`, `_sum` or `_count` of a histogram. */
  add(metric: Metric, labels: string, value: number, suffix = ''): void {
    this.#linesOf(metric).push(`${metric.name}${suffix}${labels} ${numberText(value)}`)
  }

  /** `values` at `at`: count, sum, and a count for each bound; `labels` without braces. */
  addHistogram(metric: Metric, labels: string, values: Float64Array, at: number): void {
    const count = values[at] ?? 0
    const braced = labels === '' ? '' : `{${labels}}`
    const before = labels === '' ? '' : `${labels},`
    let below = 0
    for (const [index, bound] of metric.bounds.entries()) {
      below += values[at + 2 + index] ?? 0
      this.add(metric, `{${before}le="${bound}"}`, below, '_bucket')
    }
    this.add(metric, `{${before}le="+Inf"}`, count, '_bucket')
    this.add(metric, braced, values[at + 1] ?? 0, '_sum')
    this.add(metric, braced, count, '_count')
  }

  /** In the order of the names. */
  text(): string {
    let text = ''
    const inOrder = [...this.#lines].sort(([a], [b]) => (a.name < b.name ? -1 : 1))
    for (const [, lines] of inOrder) text += `${lines.join('\n')}\n\n`
    return text
  }

  #linesOf(metric: Metric): string[] {
    let lines = this.#lines.get(metric)
    if (lines === undefined) {
      lines = [`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`]
      this.#lines.set(metric, lines)
    }
    return lines
  }
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
