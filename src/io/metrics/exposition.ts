// The Prometheus text format.

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

  /** `values` at `at`: count, sum, and a count for each bound. */
  addHistogram(family: Family, labels: string, values: Float64Array, at: number, bounds: Float64Array): void {
    const count = values[at] ?? 0
    let below = 0
    for (const [index, bound] of bounds.entries()) {
      below += values[at + 2 + index] ?? 0
      this.add(family, `{${labels},le="${bound}"}`, below, '_bucket')
    }
    this.add(family, `{${labels},le="+Inf"}`, count, '_bucket')
    this.add(family, `{${labels}}`, values[at + 1] ?? 0, '_sum')
    this.add(family, `{${labels}}`, count, '_count')
  }

  text(): string {
    let text = ''
    for (const lines of this.#families.values()) text += `${lines.join('\n')}\n\n`
    return text
  }
}
