// The Prometheus text format.

import { formatLabel } from '../../core/cluster/metric-labels.ts'
import type { Metric } from './metric.ts'

/** Collects lines by metric, as the format requires. Metrics come in the order of their descriptors. */
export class Exposition {
  readonly #lines = new Map<Metric, string[]>()

  /** `values`: those of its labels, in their order. */
  addMetric(metric: Metric, value: number, ...values: string[]): void {
    const labels = metric.labels.map((name, index) => formatLabel(name, values[index] ?? ''))
    this.add(metric, labels.length === 0 ? '' : `{${labels}}`, value)
  }

  /** `labels` with its braces, or ''. `suffix` is `_bucket`, `_sum` or `_count` of a histogram. */
  add(metric: Metric, labels: string, value: number, suffix = ''): void {
    let lines = this.#lines.get(metric)
    if (lines === undefined) {
      lines = [`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`]
      this.#lines.set(metric, lines)
    }
    lines.push(`${metric.name}${suffix}${labels} ${value}`)
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

  text(): string {
    let text = ''
    const inOrder = [...this.#lines].sort(([a], [b]) => a.id - b.id)
    for (const [, lines] of inOrder) text += `${lines.join('\n')}\n\n`
    return text
  }
}
