// The Prometheus text format, 0.0.4. Each source adds its metrics to one Exposition per scrape, which sorts them.

import { formatLabel } from '../core/cluster/metric-labels.ts'
import type { Metric } from './metric.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Adds its metrics to a scrape. */
export type ExposeMetrics = (into: Exposition) => void | Promise<void>

/** The combined text of all sources. */
export async function expositionText(...sources: readonly ExposeMetrics[]): Promise<string> {
  const exposition = new Exposition()
  await Promise.all(sources.map((expose) => expose(exposition)))
  return exposition.text()
}

/** Calls made while a text is being rendered share it. */
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

  /** Its name, type and help are shown even without series. */
  declare(metric: Metric): void {
    this.#linesOf(metric)
  }

  /** `values`: its label values, in order. */
  addMetric<Values extends readonly string[]>(metric: Metric<Values>, value: number, ...values: Values): void {
    const labels = metric.labels.map((name, index) => formatLabel(name, values[index] ?? ''))
    this.add(metric, labels.length === 0 ? '' : `{${labels}}`, value)
  }

  /** `labels` with braces, or ''. `suffix` is `_bucket`, `_sum` or `_count` of a histogram. */
  add(metric: Metric, labels: string, value: number, suffix = ''): void {
    this.#linesOf(metric).push(`${metric.name}${suffix}${labels} ${numberText(value)}`)
  }

  /** `values` from `at` on: count, sum, and a count per bound; `labels` without braces. */
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

  /** Sorted by name. */
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
