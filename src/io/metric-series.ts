// The cells that request metrics count in, and the Prometheus text format they are exposed in.

import { formatLabel } from '../core/metric-labels.ts'

/** Name, type and help of one metric. */
export interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
}

export function familyOf(name: string, type: Family['type'], help: string): Family {
  return { name, type, help }
}

/** Collects lines per family: the format wants all lines of a metric together. */
export class Exposition {
  readonly #families = new Map<Family, string[]>()

  /** `labels` with its braces, or ''. `suffix` is `_bucket`, `_sum` or `_count` of a histogram. */
  add(family: Family, labels: string, value: number, suffix = ''): void {
    let lines = this.#families.get(family)
    if (lines === undefined) {
      lines = [`# HELP ${family.name} ${family.help}`, `# TYPE ${family.name} ${family.type}`]
      this.#families.set(family, lines)
    }
    lines.push(`${family.name}${suffix}${labels} ${value}`)
  }

  text(): string {
    let text = ''
    for (const lines of this.#families.values()) text += `${lines.join('\n')}\n\n`
    return text
  }
}

/** A histogram: counts per bucket, added up when exposed. */
export class Distribution {
  count = 0
  #sum = 0
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array

  /** `bounds`: upper bounds, ascending; +Inf is implied. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    this.count++
    this.#sum += value
    const bounds = this.#bounds
    for (let i = 0; i < bounds.length; i++) {
      if (value <= (bounds[i] ?? 0)) {
        this.#counts[i] = (this.#counts[i] ?? 0) + 1
        return
      }
    }
  }

  expose(into: Exposition, family: Family, labels: string): void {
    let below = 0
    for (let i = 0; i < this.#bounds.length; i++) {
      below += this.#counts[i] ?? 0
      into.add(family, `{${labels},le="${this.#bounds[i]}"}`, below, '_bucket')
    }
    into.add(family, `{${labels},le="+Inf"}`, this.count, '_bucket')
    into.add(family, `{${labels}}`, this.#sum, '_sum')
    into.add(family, `{${labels}}`, this.count, '_count')
  }
}

/** Counters by two names, a limited number of them; the rest is counted together as `other`. */
export class CounterTable {
  readonly #limit: number
  readonly #rows = new Map<string, Map<string, { value: number }>>()
  readonly #rest = { value: 0 }
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  cell(first: string, second: string): { value: number } {
    return this.#rows.get(first)?.get(second) ?? this.#add(first, second)
  }

  #add(first: string, second: string): { value: number } {
    if (this.#size >= this.#limit) return this.#rest
    this.#size++
    const cell = { value: 0 }
    const row = this.#rows.get(first)
    if (row === undefined) this.#rows.set(first, new Map([[second, cell]]))
    else row.set(second, cell)
    return cell
  }

  /** `secondLabel` '' = the second name is no label. */
  expose(into: Exposition, family: Family, labels: string, firstLabel: string, secondLabel: string): void {
    const line = (first: string, second: string, value: number): void => {
      const more = secondLabel === '' ? '' : `,${formatLabel(secondLabel, second)}`
      into.add(family, `{${labels},${formatLabel(firstLabel, first)}${more}}`, value)
    }
    for (const [first, row] of this.#rows) for (const [second, cell] of row) line(first, second, cell.value)
    if (this.#rest.value > 0) line('other', 'other', this.#rest.value)
  }
}
