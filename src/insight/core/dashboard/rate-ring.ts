// The last half hour of a few numbers, one value per step. Filled from the gateway's own samples, so that a dashboard opened during an
// incident shows how it began.

/** Increase of a counter. It goes back only if the process was restarted: then its whole value is new. */
export function increase(before: number, now: number): number {
  return now >= before ? now - before : now
}

export class Ring {
  readonly #values: Float32Array
  #next = 0
  #size = 0

  /** @param length number of values kept */
  constructor(length: number) {
    this.#values = new Float32Array(length)
  }

  push(value: number): void {
    this.#values[this.#next] = value
    this.#next = (this.#next + 1) % this.#values.length
    if (this.#size < this.#values.length) this.#size++
  }

  /** 0 = none yet. */
  get last(): number {
    return this.#size === 0 ? 0 : this.#at(this.#size - 1)
  }

  /** The sum of the newest values. */
  sum(newest: number): number {
    let sum = 0
    for (let i = Math.max(0, this.#size - newest); i < this.#size; i++) sum += this.#at(i)
    return sum
  }

  /** Newest last; shorter than `newest` if there are fewer. */
  values(newest: number): number[] {
    const from = Math.max(0, this.#size - newest)
    return Array.from({ length: this.#size - from }, (_, i) => this.#at(from + i))
  }

  /** Means of groups of values, newest last: a coarser series of the same time. */
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
 * A histogram quantile, estimated like Prometheus' histogram_quantile: linear inside the bucket. null = the histogram is empty.
 * @param bounds upper bounds of the buckets, without +Inf
 * @param counts one per bound, for that bucket alone
 * @param total including values above the last bound
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
