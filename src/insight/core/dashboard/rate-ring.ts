// The last half hour of a few numbers, a value for each step. Filled by the gateway's own samples, so that whoever opens the dashboard in
// an incident sees how it began.

/** A counter of a process goes back only when it is another process: what it then has is new. */
export function increase(before: number, now: number): number {
  return now >= before ? now - before : now
}

export class Ring {
  readonly #values: Float32Array
  #next = 0
  #size = 0

  /** @param length how many values are kept */
  constructor(length: number) {
    this.#values = new Float32Array(length)
  }

  push(value: number): void {
    this.#values[this.#next] = value
    this.#next = (this.#next + 1) % this.#values.length
    if (this.#size < this.#values.length) this.#size++
  }

  /** 0 = there is none yet. */
  get last(): number {
    return this.#size === 0 ? 0 : this.#at(this.#size - 1)
  }

  /** The sum of the newest ones. */
  sum(newest: number): number {
    let sum = 0
    for (let i = Math.max(0, this.#size - newest); i < this.#size; i++) sum += this.#at(i)
    return sum
  }

  /** The newest last; shorter than `newest` when there are not so many. */
  values(newest: number): number[] {
    const from = Math.max(0, this.#size - newest)
    return Array.from({ length: this.#size - from }, (_, i) => this.#at(from + i))
  }

  /** Means of groups of values, the newest last: a coarser line of the same time. */
  means(group: number): number[] {
    const means: number[] = []
    for (let end = this.#size; end > 0; end -= group) {
      const from = Math.max(0, end - group)
      let sum = 0
      for (let i = from; i < end; i++) sum += this.#at(i)
      means.push(sum / (end - from))
    }
    return means.reverse()
  }

  #at(index: number): number {
    const { length } = this.#values
    return this.#values[(this.#next - this.#size + index + length) % length] ?? 0
  }
}

/**
 * A quantile of a histogram, as Prometheus' histogram_quantile estimates it: linear inside the bucket. null = it counts nothing.
 * @param bounds upper bounds of the buckets, without +Inf
 * @param counts one for each bound, of that bucket alone
 * @param total with what is above the last bound
 */
export function quantile(rank: number, bounds: Float64Array, counts: Float64Array, total: number): number | null {
  if (total <= 0) return null
  const wanted = rank * total
  let seen = 0
  for (let i = 0; i < bounds.length; i++) {
    const inBucket = counts[i] ?? 0
    if (seen + inBucket >= wanted && inBucket > 0) {
      const from = i === 0 ? 0 : (bounds[i - 1] ?? 0)
      return from + ((bounds[i] ?? 0) - from) * ((wanted - seen) / inBucket)
    }
    seen += inBucket
  }
  return bounds.at(-1) ?? null
}
