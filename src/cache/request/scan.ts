// Finds what a read selects. All objects may have to be looked at for an answer that has none of them: the time is the caller's, and of many objects
// it is divided into slices between turns of the event loop.

import type { Account, Waiter } from '../../gateway/core/thread-time/accounts.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Charge } from '../../kit/api/stream.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedObject } from '../state/cached-object.ts'
import type { ObjectRange } from '../state/object-range.ts'
import type { Selects } from './selection.ts'

/** The clock is read after eight times as many. */
const OBJECTS_A_LOOK = 8
/** So many take less than a slice: they are looked at in the same turn. */
const FEW_OBJECTS = 256

/** Whose scan it is. */
interface Scanner {
  readonly charge: Charge
  /** The client has gone: the answer is of no use. */
  readonly gone: boolean
}

/** Objects among which it is looked for some. */
export interface ScannedPart {
  readonly range: ObjectRange
  readonly selects: Selects
}

interface Scanned {
  /** By part. */
  readonly found: readonly (readonly CachedObject[])[]
  /** Objects that were not looked at: behind the last that was found. */
  readonly left: number
}

/**
 * The objects that are selected, as they were when this was called.
 * @param namespace '' = all
 */
export async function scan(
  scanner: Scanner,
  collection: CachedCollection,
  namespace: string,
  selects: Selects,
): Promise<readonly CachedObject[]> {
  const part = { range: collection.range(namespace), selects }
  const { found } = await scanParts(scanner, [part], Number.POSITIVE_INFINITY, () => collection.lend())
  return found[0] ?? []
}

/**
 * The first that are selected, of one part behind the other.
 * @param most it ends with so many
 * @param lend called before anything can change: the ranges have to stay as they are
 */
export async function scanParts(
  scanner: Scanner,
  parts: readonly ScannedPart[],
  most: number,
  lend: () => void,
): Promise<Scanned> {
  const startMs = performance.now()
  const account = threadScheduler.accountOf(scanner.charge, startMs)
  const work = new Scan(scanner, parts, most)
  if (work.left <= FEW_OBJECTS) work.rest()
  else if (threadScheduler.begin(account, startMs)) work.slice()
  threadScheduler.charge(account, startMs, performance.now())
  if (!work.isOver) {
    lend()
    await work.inTurns(account)
  }
  return work
}

/** Makes something of each object, in slices too. @returns of less objects if the client has gone */
export async function inSlices(
  scanner: Scanner,
  objects: readonly CachedObject[],
  make: (object: CachedObject) => void,
): Promise<void> {
  const selects = (object: CachedObject): boolean => {
    make(object)
    return false
  }
  const part = { range: { objects, from: 0, to: objects.length }, selects }
  const work = new Scan(scanner, [part], Number.POSITIVE_INFINITY, 1)
  const startMs = performance.now()
  const account = threadScheduler.accountOf(scanner.charge, startMs)
  if (threadScheduler.begin(account, startMs)) work.slice()
  threadScheduler.charge(account, startMs, performance.now())
  if (!work.isOver) await work.inTurns(account)
}

class Scan implements Waiter, Scanned {
  readonly found: CachedObject[][]
  readonly #scanner: Scanner
  readonly #parts: readonly ScannedPart[]
  readonly #done = Promise.withResolvers<void>()
  readonly #aLook: number
  #missing: number
  /** The part that is looked at, and the next of its objects. */
  #at = 0
  #next: number

  /** @param aLook objects after which the time is looked at, about */
  constructor(scanner: Scanner, parts: readonly ScannedPart[], most: number, aLook = OBJECTS_A_LOOK) {
    this.#aLook = aLook
    this.#scanner = scanner
    this.#parts = parts
    this.#missing = most
    this.found = parts.map(() => [])
    this.#next = parts[0]?.range.from ?? 0
    this.#passEmpty()
  }

  get isOver(): boolean {
    return this.#missing === 0 || this.#at >= this.#parts.length
  }

  get left(): number {
    const behind = this.#parts.slice(this.#at + 1)
    const ofPart = (this.#parts[this.#at]?.range.to ?? 0) - this.#next
    return behind.reduce((sum, { range }) => sum + range.to - range.from, ofPart)
  }

  /** Resolves when all were looked at, or the caller has gone. */
  async inTurns(account: Account): Promise<void> {
    threadScheduler.wait(account, this)
    await this.#done.promise
  }

  rest(): void {
    while (!this.isOver) this.#look(FEW_OBJECTS)
  }

  /** As many as the slice allows. */
  slice(): void {
    do this.#look(this.#aLook)
    while (!this.isOver && threadScheduler.goOn())
  }

  work(untilMs: number): boolean {
    threadScheduler.resumeSlice(performance.now(), untilMs)
    this.slice()
    if (!this.isOver && !this.#scanner.gone) return true
    this.#done.resolve()
    return false
  }

  #look(count: number): void {
    for (let looks = count; looks > 0 && !this.isOver; ) looks -= this.#lookAtPart(looks)
  }

  /** @returns at how many it has looked: one at least */
  #lookAtPart(count: number): number {
    const part = this.#parts[this.#at]
    const found = this.found[this.#at]
    if (part === undefined || found === undefined) return count
    const { range, selects } = part
    const { objects } = range
    const from = this.#next
    const to = Math.min(range.to, from + count)
    while (this.#next < to && this.#missing > 0) {
      const object = objects[this.#next++]
      if (object === undefined || !selects(object)) continue
      found.push(object)
      this.#missing--
    }
    const looks = this.#next - from
    this.#passEmpty()
    return looks
  }

  /** To the next that is to be looked at. */
  #passEmpty(): void {
    for (let part = this.#parts[this.#at]; part !== undefined && this.#next >= part.range.to; ) {
      part = this.#parts[++this.#at]
      this.#next = part?.range.from ?? 0
    }
  }
}
