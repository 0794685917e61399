// A doubly linked list whose items carry the links: what is first is found at once, and anything is removed at once. (A Set whose first
// is deleted and added again and again walks over the deleted ones.)

/** In one chain at a time. */
export abstract class Linked {
  before: Linked | undefined = undefined
  after: Linked | undefined = undefined
}

export class Chain<T extends Linked> {
  first: T | undefined = undefined
  last: T | undefined = undefined
  size = 0

  push(item: T): void {
    item.before = this.last
    item.after = undefined
    if (this.last === undefined) this.first = item
    else this.last.after = item
    this.last = item
    this.size++
  }

  /** It has to be in this chain. */
  remove(item: T): void {
    if (item.before === undefined) this.first = item.after as T | undefined
    else item.before.after = item.after
    if (item.after === undefined) this.last = item.before as T | undefined
    else item.after.before = item.before
    item.before = undefined
    item.after = undefined
    this.size--
  }

  /** Meanwhile only the item that was given out last may be removed. */
  *[Symbol.iterator](): Iterator<T> {
    for (let item = this.first; item !== undefined; ) {
      const after = item.after as T | undefined
      yield item
      item = after
    }
  }
}
