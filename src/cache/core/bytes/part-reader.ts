// What an answer is made of, one part after the other. There may be a hundred thousand of them, and a view of memory for each would take longer than
// to copy what it shows.

const NOTHING = Buffer.alloc(0)

export interface PartReader {
  /** Where the part is that `next` has gone on to. */
  readonly memory: Buffer
  readonly start: number
  readonly end: number
  /** The next part belongs to the same event of a watch. */
  readonly isOpen: boolean
  /** @returns false = that was all @throws {MalformedError} */
  next(): boolean
}

/** Where the bytes of an item are. */
export interface ItemPlace {
  memory: Buffer
  start: number
  end: number
}

/** Items, and what stands around them. */
export interface ItemParts<T> {
  readonly objects: readonly T[]
  /** Says of what is sent of an object where it is. */
  readonly locate: (object: T, place: ItemPlace) => void
  /** In front of all items. */
  readonly opening: Buffer
  /** In front of each, by its length and its number from 0. */
  readonly before: (bytes: number, number: number) => Buffer
  readonly after: Buffer
  /** Behind all items. */
  readonly closing: Buffer
  /** Up to this length an item and what stands around it are one event. */
  readonly mostOpen: number
}

/** In which of its parts the reader is: that of all items, or of one. */
const OPENING = 0
const BEFORE = 1
const ITEM = 2
const AFTER = 3
const CLOSING = 4
const END = 5

export class ItemReader<T> implements PartReader {
  memory: Buffer = NOTHING
  start = 0
  end = 0
  isOpen = false
  readonly #parts: ItemParts<T>
  readonly #item: ItemPlace = { memory: NOTHING, start: 0, end: 0 }
  #next: number
  #at = 0

  constructor(parts: ItemParts<T>) {
    this.#parts = parts
    this.#next = parts.opening.length > 0 ? OPENING : BEFORE
  }

  next(): boolean {
    const { opening, after, closing } = this.#parts
    switch (this.#next) {
      case OPENING:
        this.#next = BEFORE
        return this.#whole(opening)
      case BEFORE:
        return this.#begin()
      case ITEM:
        this.#next = after.length > 0 ? AFTER : BEFORE
        this.isOpen &&= after.length > 0
        this.memory = this.#item.memory
        this.start = this.#item.start
        this.end = this.#item.end
        return true
      case AFTER:
        this.#next = BEFORE
        this.isOpen = false
        return this.#whole(after)
      case CLOSING:
        this.#next = END
        return this.#whole(closing)
      default:
        return false
    }
  }

  /** With what stands in front of the next item, if there is one, and anything in front. */
  #begin(): boolean {
    const { objects, locate, before, after, closing, mostOpen } = this.#parts
    const object = objects[this.#at]
    if (object === undefined) {
      this.#next = closing.length > 0 ? CLOSING : END
      return this.next()
    }
    locate(object, this.#item)
    const bytes = this.#item.end - this.#item.start
    const head = before(bytes, this.#at++)
    this.#next = ITEM
    this.isOpen = head.length + bytes + after.length <= mostOpen
    return head.length > 0 ? this.#whole(head) : this.next()
  }

  #whole(part: Buffer): true {
    this.memory = part
    this.start = 0
    this.end = part.length
    return true
  }
}

/** Some of the items, with what stands between them and in front of those that are not the first of all; nothing that stands around all. */
export function someItems<T>(parts: ItemParts<T>, from: number, to: number): PartReader {
  const { objects, before } = parts
  return new ItemReader({
    ...parts,
    objects: objects.slice(from, to),
    opening: NOTHING,
    before: (bytes, number) => before(bytes, from + number),
    closing: NOTHING,
  })
}

/** Parts that are in memory of their own. */
export class WholeParts implements PartReader {
  memory: Buffer = NOTHING
  readonly start = 0
  end = 0
  readonly isOpen = false
  readonly #part: () => Buffer | undefined

  /** @param part the next one; undefined = there is none */
  constructor(part: () => Buffer | undefined) {
    this.#part = part
  }

  next(): boolean {
    const part = this.#part()
    if (part === undefined) return false
    this.memory = part
    this.end = part.length
    return true
  }
}

/** Parts that are made one after the other. */
export function partsOf(parts: Iterator<Buffer, undefined>): PartReader {
  return new WholeParts(() => parts.next().value)
}
