// Heavy hitters of a stream in bounded memory: space-saving (Metwally, Agrawal, El Abbadi 2005) with weights, in batches (Anderson et al.
// 2017, as in Apache DataSketches). When a table of 2m names is full, it keeps the m heaviest; what the others had is forgotten, and known
// to be at most `lost`, which is at most 1/m of the total weight. No heap is needed, and six measures share one table: the weight of a name
// is the sum of its measures, each in units of its mean.

import { RANKED, REQUESTS, TALLY_LENGTH, TALLY_WIDTH } from './measures.ts'
import { flatCopy, lastLetters, MAX_NAME_LENGTH, saltOf } from './names.ts'
import { nthLargest } from './nth-largest.ts'

/** Offset in an entry of the weight that may have been forgotten before it came. */
const LOST = TALLY_LENGTH
/** Entries found without a map lookup; a power of two. */
const RECENT = 8192

/** Receives the sums of a forgotten entry. */
type OnForgotten = (scope: string, name: string, sums: Float64Array, at: number) => void

export class SpaceSaving {
  readonly #capacity: number
  #units: Float64Array
  readonly #onForgotten: OnForgotten
  /** Scope -> name -> slot. */
  readonly #places = new Map<string, Map<string, number>>()
  readonly #scopes: string[] = []
  readonly #names: string[] = []
  #sums: Float64Array
  readonly #recent = new Uint16Array(RECENT)
  #lost = 0

  /**
   * @param capacity number of names; m is half of it. At most 65,534
   * @param units by measure, the amount that weighs 1
   */
  constructor(capacity: number, units: Float64Array, onForgotten: OnForgotten = () => undefined) {
    this.#capacity = capacity
    this.#units = units
    this.#onForgotten = onForgotten
    this.#sums = new Float64Array(Math.min(capacity, 64) * TALLY_WIDTH)
  }

  get size(): number {
    return this.#names.length
  }

  /** By measure, the upper bound for a name that is not in the table. */
  missing(): Float64Array {
    return Float64Array.from({ length: TALLY_LENGTH }, (_, i) => this.#lost * this.#unitOf(i))
  }

  /** Tallies of all entries, each at its `at`. Do not keep a reference: a new name may reallocate it. */
  get sums(): Float64Array {
    return this.#sums
  }

  /**
   * Offset of a name's tally. Called for each request: allocates nothing for a known name.
   * @param salt a hash of the scope
   */
  at(scope: string, salt: number, name: string): number {
    const slot = (lastLetters(name) ^ salt) & (RECENT - 1)
    let place = (this.#recent[slot] ?? 0) - 1
    if (place < 0 || this.#names[place] !== name || this.#scopes[place] !== scope) {
      place = this.#placeOf(scope, name)
      this.#recent[slot] = place + 1
    }
    return place * TALLY_WIDTH
  }

  /** Adds the tally at offset `from`. */
  add(scope: string, name: string, tally: Float64Array, from: number): void {
    const at = this.at(scope, saltOf(scope), name)
    const sums = this.#sums
    for (let i = 0; i < TALLY_LENGTH; i++) sums[at + i] = (sums[at + i] ?? 0) + (tally[from + i] ?? 0)
  }

  /** Visits each entry: its sums begin at `at`. `error` is how much more they may be, by measure. */
  forEach(
    visit: (scope: string, name: string, sums: Float64Array, at: number, error: (measure: number) => number) => void,
  ): void {
    let lost = 0
    const error = (measure: number): number => lost * this.#unitOf(measure)
    for (let place = 0; place < this.size; place++) {
      const at = place * TALLY_WIDTH
      lost = this.#sums[at + LOST] ?? 0
      visit(this.#scopes[place] ?? '', this.#names[place] ?? '', this.#sums, at, error)
    }
  }

  /** @param units by measure, the amount that weighs 1 from now on */
  clear(units: Float64Array): void {
    this.#places.clear()
    this.#sums.fill(0, 0, this.size * TALLY_WIDTH)
    this.#scopes.length = 0
    this.#names.length = 0
    this.#recent.fill(0)
    this.#lost = 0
    this.#units = units
  }

  #unitOf(measure: number): number {
    return this.#units[measure < RANKED ? measure : REQUESTS] ?? 0
  }

  #placeOf(scope: string, given: string): number {
    const cut = given.length > MAX_NAME_LENGTH ? given.slice(0, MAX_NAME_LENGTH) : given
    const known = this.#places.get(scope)?.get(cut)
    if (known !== undefined) return known
    if (this.size >= this.#capacity) this.#forget()
    const place = this.size
    if ((place + 1) * TALLY_WIDTH > this.#sums.length) this.#grow()
    const name = flatCopy(cut)
    this.#names.push(name)
    this.#scopes.push(scope)
    this.#index(scope, name, place)
    this.#sums[place * TALLY_WIDTH + LOST] = this.#lost
    return place
  }

  #index(scope: string, name: string, place: number): void {
    let names = this.#places.get(scope)
    if (names === undefined) {
      names = new Map()
      this.#places.set(scope, names)
    }
    names.set(name, place)
  }

  #grow(): void {
    const grown = new Float64Array(Math.min(this.#sums.length * 2, this.#capacity * TALLY_WIDTH))
    grown.set(this.#sums)
    this.#sums = grown
  }

  /** Keeps the heavier half. */
  #forget(): void {
    const { size } = this
    const keep = this.#capacity >> 1
    const most = new Float64Array(size)
    for (let place = 0; place < size; place++) most[place] = this.#mostOf(place)
    const limit = nthLargest(most.slice(), keep)
    // Among entries with exactly the limit's weight, keep as many as fit.
    let equal = keep
    for (const weight of most) if (weight > limit) equal--
    this.#places.clear()
    this.#recent.fill(0)
    let kept = 0
    for (let place = 0; place < size; place++) {
      const weight = most[place] ?? 0
      if (weight > limit || (weight === limit && equal-- > 0)) this.#move(place, kept++)
      else this.#onForgotten(this.#scopes[place] ?? '', this.#names[place] ?? '', this.#sums, place * TALLY_WIDTH)
    }
    this.#names.length = kept
    this.#scopes.length = kept
    this.#sums.fill(0, kept * TALLY_WIDTH, size * TALLY_WIDTH)
    this.#lost = Math.max(this.#lost, limit)
  }

  #move(from: number, to: number): void {
    const scope = this.#scopes[from] ?? ''
    const name = this.#names[from] ?? ''
    this.#scopes[to] = scope
    this.#names[to] = name
    this.#sums.copyWithin(to * TALLY_WIDTH, from * TALLY_WIDTH, (from + 1) * TALLY_WIDTH)
    this.#index(scope, name, to)
  }

  /** Upper bound of an entry's weight. */
  #mostOf(place: number): number {
    const at = place * TALLY_WIDTH
    let weight = this.#sums[at + LOST] ?? 0
    for (let i = 0; i < RANKED; i++) weight += (this.#sums[at + i] ?? 0) / (this.#units[i] ?? 1)
    return weight
  }
}
