// One resource of one thread, divided among those who use it. Who is alone may use all of it; when it is used up, whoever has less than a
// share still gets something out of a reserve, and whoever has a share or more waits until it has given back.

/** over-share: this source has its share, and nothing is left. full: it has not, but the reserve is used up, too. */
export type Taken = 'taken' | 'over-share' | 'full'

/** What one source holds. */
export interface Holder {
  readonly source: string
  readonly weight: number
  readonly held: number
}

/** Part of the capacity that is kept on top, for those with less than their share. */
export const RESERVE_OF = 8
/** Half of the reserve is for those who hold nothing, or at most this part of their share: many sources below their share would use up all of it. */
const LITTLE_OF = 8
/** Entries of the table that are looked at when one is added: so that it never has many more than there are holders. */
const SWEPT = 2

interface Entry {
  source: string
  weight: number
  held: number
}

export class Shares {
  #capacity: number
  #entries = new Map<string, Entry>()
  /** Looked up last: what is taken and given back is often of one source, many times in a row. */
  #last: Entry | undefined
  #sweep: Iterator<Entry> = NOTHING
  #held = 0
  /** Of the sources that hold something. */
  #weights = 0
  #holders = 0

  /** @param capacity in units of the resource; 0 = unlimited: everything is taken, and nothing is counted */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get capacity(): number {
    return this.#capacity
  }

  /** What may be held on top, by those with less than a share. */
  get reserve(): number {
    return Math.floor(this.#capacity / RESERVE_OF)
  }

  /** Of all sources together; at most capacity and reserve, and what was charged beyond. */
  get held(): number {
    return this.#held
  }

  /** Sources that hold something. */
  get holders(): number {
    return this.#holders
  }

  /** Sources that are remembered: holders, and as many again that held something shortly before. */
  get remembered(): number {
    return this.#entries.size
  }

  /** More is held than the capacity: some have less than their share because others have more. */
  get reserveInUse(): boolean {
    return this.#held > this.#capacity
  }

  /**
   * Takes all of `amount` or nothing. What was taken is to be given back by `give`, with the same source.
   * @param weight more than 0; the latest one of a source counts
   * @param amount more than 0
   */
  take(source: string, weight: number, amount: number): Taken {
    const capacity = this.#capacity
    if (capacity === 0) return 'taken'
    const entry = this.#entryOf(source)
    const held = this.#held + amount
    if (held > capacity) {
      const own = entry === undefined ? 0 : entry.held
      const others = own > 0 && entry !== undefined ? this.#weights - entry.weight : this.#weights
      if (own * (others + weight) >= capacity * weight) return 'over-share'
      const isLittle = own === 0 || (own + amount) * LITTLE_OF * (others + weight) <= capacity * weight
      if (held > capacity + (isLittle ? this.reserve : Math.ceil(this.reserve / 2))) return 'full'
    }
    this.#held = held
    if (entry === undefined) this.#add(source, weight, amount)
    else this.#raise(entry, weight, amount)
    return 'taken'
  }

  /** Takes what is there already and cannot be refused, however much others hold. As `take` otherwise. */
  charge(source: string, weight: number, amount: number): void {
    if (this.#capacity === 0) return
    const entry = this.#entries.get(source)
    this.#held += amount
    if (entry === undefined) this.#add(source, weight, amount)
    else this.#raise(entry, weight, amount)
  }

  /** Nothing is left, and this source has its share: it would get no more. */
  isOver(source: string, weight: number): boolean {
    const capacity = this.#capacity
    if (this.#held < capacity || capacity === 0) return false
    return this.heldBy(source) >= this.shareOf(source, weight)
  }

  /** Gives back what was taken. @throws {RangeError} when the source does not hold so much: a bug */
  give(source: string, amount: number): void {
    if (this.#capacity === 0) return
    const entry = this.#entryOf(source)
    if (entry === undefined || entry.held < amount) throw new RangeError(`${source} gives back what it does not hold`)
    entry.held -= amount
    this.#held -= amount
    if (entry.held > 0) return
    this.#holders--
    // Exactly 0, whatever rounding of fractions has left.
    this.#weights = this.#holders === 0 ? 0 : this.#weights - entry.weight
  }

  #entryOf(source: string): Entry | undefined {
    const last = this.#last
    if (last !== undefined && last.source === source) return last
    const entry = this.#entries.get(source)
    if (entry !== undefined) this.#last = entry
    return entry
  }

  heldBy(source: string): number {
    return this.#entryOf(source)?.held ?? 0
  }

  /** What a source may hold while there is not enough for all: a part of the capacity, by its weight beside those that hold something. */
  shareOf(source: string, weight: number): number {
    const entry = this.#entries.get(source)
    const others = entry !== undefined && entry.held > 0 ? this.#weights - entry.weight : this.#weights
    return (this.#capacity * weight) / (others + weight)
  }

  /** Those who hold most, most first; takes time linear in the number of holders. */
  largest(most: number): Holder[] {
    const largest: Entry[] = []
    for (const entry of this.#entries.values()) {
      if (entry.held === 0 || (largest.length === most && entry.held <= (largest.at(-1)?.held ?? 0))) continue
      const at = largest.findIndex(({ held }) => held < entry.held)
      largest.splice(at < 0 ? largest.length : at, 0, entry)
      if (largest.length > most) largest.pop()
    }
    return largest.map((entry) => ({ ...entry }))
  }

  #raise(entry: Entry, weight: number, amount: number): void {
    if (entry.held === 0) {
      this.#holders++
      this.#weights += weight
    } else this.#weights += weight - entry.weight
    entry.weight = weight
    entry.held += amount
  }

  /** Entries stay when nothing is held any more, since most sources come again at once; who does not is forgotten here. */
  #add(source: string, weight: number, amount: number): void {
    this.#entries.set(source, { source, weight, held: amount })
    this.#weights += weight
    this.#holders++
    for (let i = 0; i < SWEPT; i++) {
      const next = this.#sweep.next()
      if (next.done === true) {
        this.#sweep = this.#entries.values()
        return
      }
      if (next.value.held > 0) continue
      this.#entries.delete(next.value.source)
      if (next.value === this.#last) this.#last = undefined
    }
  }
}

const NOTHING: Iterator<Entry> = [].values()
