// One resource of one thread, divided among its sources. A source that is alone may use all of it. Once it is used up, a source below its
// share still gets something from a reserve, and a source at or above its share waits until it has given back.

/** over-share: this source has its share, and nothing is left. full: it is below its share, but the reserve is used up too. */
export type Taken = 'taken' | 'over-share' | 'full'

/** A source and what it holds. */
export interface ShareHolder {
  readonly source: string
  readonly weight: number
  readonly held: number
}

/** Reserve on top of the capacity for sources below their share: one part in this many. */
export const RESERVE_OF = 8
/**
 * Half of the reserve is for sources that hold nothing or at most this part of their share; otherwise many sources below it would use up
 * all.
 */
const LITTLE_OF = 8
/** Table entries examined per insertion, so that the table never has many more entries than holders. */
const SWEPT = 2

interface Entry {
  source: string
  weight: number
  held: number
}

/** What a source asks for when the capacity is used up. */
interface ContendedTake {
  readonly capacity: number
  /** By all, with what is asked for. */
  readonly held: number
  /** By the source, without. */
  readonly own: number
  /** Sum of the weights of the other sources that hold something. */
  readonly others: number
  readonly weight: number
  readonly amount: number
}

/** The rule of all shares, wherever it is counted who holds what. */
export function takenOf({ capacity, held, own, others, weight, amount }: ContendedTake): Taken {
  if (held <= capacity) return 'taken'
  if (own * (others + weight) >= capacity * weight) return 'over-share'
  const isLittle = own === 0 || (own + amount) * LITTLE_OF * (others + weight) <= capacity * weight
  const reserve = reserveOf(capacity)
  return held > capacity + (isLittle ? reserve : Math.ceil(reserve / 2)) ? 'full' : 'taken'
}

function reserveOf(capacity: number): number {
  return Math.floor(capacity / RESERVE_OF)
}

export class Shares {
  #capacity: number
  #entries = new Map<string, Entry>()
  /** Cache of the last lookup: takes and gives often come from one source many times in a row. */
  #last: Entry | undefined
  #sweep: Iterator<Entry> = NOTHING
  #held = 0
  /** Sum of weights of the sources that hold something. */
  #weights = 0
  #holders = 0

  /** @param capacity in units of the resource; 0 = unlimited: everything is taken, and nothing is counted */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get capacity(): number {
    return this.#capacity
  }

  /** What sources below their share may hold on top. */
  get reserve(): number {
    return reserveOf(this.#capacity)
  }

  /** Over all sources; at most capacity plus reserve, plus what was charged beyond. */
  get held(): number {
    return this.#held
  }

  /** Sources that hold something. */
  get holders(): number {
    return this.#holders
  }

  /** Remembered sources: holders, and as many again that held something recently. */
  get remembered(): number {
    return this.#entries.size
  }

  /** More than the capacity is held: some sources are below their share because others are above theirs. */
  get reserveInUse(): boolean {
    return this.#held > this.#capacity
  }

  /**
   * Takes all of `amount` or nothing. Must be returned by `give`, with the same source.
   * @param weight more than 0; a source's latest one counts
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
      const taken = takenOf({ capacity, held, own, others, weight, amount })
      if (taken !== 'taken') return taken
    }
    this.#held = held
    if (entry === undefined) this.#add(source, weight, amount)
    else this.#raise(entry, weight, amount)
    return 'taken'
  }

  /** Charges what is already held and can't be refused, however much others hold. Otherwise as `take`. */
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

  /** Gives back what was taken. @throws {RangeError} if the source does not hold that much: a bug */
  give(source: string, amount: number): void {
    if (this.#capacity === 0) return
    const entry = this.#entryOf(source)
    if (entry === undefined || entry.held < amount) throw new RangeError(`${source} returns more than it holds`)
    entry.held -= amount
    this.#held -= amount
    if (entry.held > 0) return
    this.#holders--
    // Exactly 0, whatever rounding errors are left.
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

  /** What a source may hold under contention: its part of the capacity, by weight among the current holders. */
  shareOf(source: string, weight: number): number {
    const entry = this.#entries.get(source)
    const others = entry !== undefined && entry.held > 0 ? this.#weights - entry.weight : this.#weights
    return (this.#capacity * weight) / (others + weight)
  }

  /** The largest holders, largest first; linear in the number of holders. */
  largest(most: number): ShareHolder[] {
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

  /** Entries outlive what they hold, since most sources return at once; those that do not are removed here. */
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
