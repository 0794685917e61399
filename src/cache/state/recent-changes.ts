// The last changes of something, in the order in which they came, and the events that are made of them: each up to an amount. A watch keeps its place in it.

/** As long as kube-apiserver keeps it at least. */
export const HISTORY_MS = 75_000
export const HISTORY_BYTES: number = 8 * 1024 * 1024
/** Events that are made of changes, in all forms: open watches get the same ones. Of older changes they are made again. */
export const MADE_BYTES: number = 2 * 1024 * 1024

export interface RecentChange {
  readonly object: { readonly bytes: number }
  /** With those of what it was before. */
  readonly bytes: number
  readonly atMs: number
  /** Bytes of the events that have been made of it. */
  readonly madeBytes: number
  /** They are made again when a watch needs them. */
  forgetEvents(): void
}

export class RecentChanges<Change extends RecentChange> {
  readonly #changes: Change[] = []
  /** Index of the first change that is still there. */
  #first = 0
  #bytes = 0
  /** Changes whose events are there, the oldest first, and the bytes of those. */
  readonly #made = new Map<Change, number>()
  #madeBytes = 0

  /** Index behind the last change. */
  get end(): number {
    return this.#first + this.#changes.length
  }

  /** Bytes of the events that are kept. */
  get madeBytes(): number {
    return this.#madeBytes
  }

  /** undefined = it is gone, or not there yet. */
  at(index: number): Change | undefined {
    return this.#changes[index - this.#first]
  }

  has(index: number): boolean {
    return index >= this.#first
  }

  /** Bytes of the changes from this index on, counted up to about `most`. */
  bytesFrom(index: number, most: number): number {
    let bytes = 0
    for (let at = Math.max(0, index - this.#first); at < this.#changes.length && bytes <= most; at++)
      bytes += this.#changes[at]?.object.bytes ?? 0
    return bytes
  }

  /** Index behind the last change that is known: all in front of it are. */
  behindKnown(isKnown: (change: Change) => boolean): number {
    let low = 0
    let high = this.#changes.length
    while (low < high) {
      const middle = (low + high) >> 1
      const change = this.#changes[middle]
      if (change !== undefined && isKnown(change)) low = middle + 1
      else high = middle
    }
    return this.#first + low
  }

  push(change: Change): void {
    this.#changes.push(change)
    this.#bytes += change.bytes
  }

  /** @returns what is too old or too much, and forgotten now */
  forgetOld(nowMs: number): readonly Change[] {
    let count = 0
    let bytes = this.#bytes
    for (const change of this.#changes) {
      if (bytes <= HISTORY_BYTES && nowMs - change.atMs <= HISTORY_MS) break
      bytes -= change.bytes
      count++
    }
    return this.#forget(count)
  }

  /** @returns what is forgotten */
  forgetAll(): readonly Change[] {
    return this.#forget(this.#changes.length)
  }

  /** Only these stay; no earlier index means anything any more. */
  keepOnly(stays: (change: Change) => boolean): void {
    this.#first++
    for (const change of this.forgetAll()) if (stays(change)) this.push(change)
  }

  /** @param make may make an event of the change */
  made<T>(change: Change, make: () => T): T {
    const before = change.madeBytes
    const event = make()
    const bytes = change.madeBytes
    if (bytes === before) return event
    this.#made.set(change, bytes)
    this.#madeBytes += bytes - before
    for (const other of this.#made.keys()) {
      if (this.#madeBytes <= MADE_BYTES || other === change) break
      this.#forgetEvents(other)
    }
    return event
  }

  #forgetEvents(change: Change): void {
    this.#madeBytes -= this.#made.get(change) ?? 0
    this.#made.delete(change)
    change.forgetEvents()
  }

  /** The first `count`. */
  #forget(count: number): readonly Change[] {
    if (count === 0) return []
    const forgotten = this.#changes.splice(0, count)
    this.#first += count
    for (const change of forgotten) {
      this.#bytes -= change.bytes
      this.#forgetEvents(change)
    }
    return forgotten
  }
}
