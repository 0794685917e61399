// Shared memory for the bytes of objects, which all threads read and the main thread writes: appended to segments, each of which is given up
// when nothing in it is needed any more.

import type { Segment } from '../core/changes/collection.ts'

/** Size of the first segment; each later one has twice as much, up to the next. A larger object has a segment of its own. */
const FIRST_SEGMENT_BYTES = 64 * 1024
export const SEGMENT_BYTES: number = 1024 * 1024
/** A segment of which less than one part in so many is in use is rewritten. */
const SPARSE_PART = 2

export interface Place {
  readonly segment: number
  readonly offset: number
  readonly length: number
}

interface OpenSegment extends Segment {
  readonly bytes: Buffer
  /** Written so far. */
  end: number
  /** Bytes in use. */
  used: number
}

export interface SegmentNews {
  readonly segments: readonly Segment[]
  readonly dropped: readonly number[]
}

export class Segments {
  readonly #all = new Map<number, OpenSegment>()
  #current: OpenSegment | undefined
  #nextId = 1
  #nextBytes = FIRST_SEGMENT_BYTES
  #added: Segment[] = []
  #dropped: number[] = []
  #bytes = 0

  /** Memory of all segments. */
  get bytes(): number {
    return this.#bytes
  }

  /** How much more memory it takes to put so many bytes. */
  growth(length: number): number {
    const current = this.#current
    const fits = current !== undefined && current.bytes.length - current.end >= length
    return fits ? 0 : Math.max(length, this.#nextBytes)
  }

  /** Copies the bytes. */
  put(bytes: Uint8Array): Place {
    const { length } = bytes
    let segment = this.#current
    if (segment === undefined || segment.bytes.length - segment.end < length) segment = this.#open(length)
    const offset = segment.end
    segment.bytes.set(bytes, offset)
    segment.end += length
    segment.used += length
    return { segment: segment.id, offset, length }
  }

  /** A view. */
  read({ segment, offset, length }: Place): Buffer {
    return this.#all.get(segment)?.bytes.subarray(offset, offset + length) ?? Buffer.alloc(0)
  }

  release({ segment: id, length }: Place): void {
    const segment = this.#all.get(id)
    if (segment === undefined) return
    segment.used -= length
    if (segment.used <= 0 && segment !== this.#current) this.#drop(segment)
  }

  /** Segments that should be rewritten: what is in use there goes elsewhere. */
  sparse(): ReadonlySet<number> {
    const found = new Set<number>()
    for (const segment of this.#all.values()) {
      if (segment !== this.#current && segment.used * SPARSE_PART < segment.bytes.length) found.add(segment.id)
    }
    return found
  }

  get all(): readonly Segment[] {
    return Array.from(this.#all.values(), ({ id, memory }) => ({ id, memory }))
  }

  /** Since the last call. */
  takeNews(): SegmentNews {
    const news = { segments: this.#added, dropped: this.#dropped }
    this.#added = []
    this.#dropped = []
    return news
  }

  #open(least: number): OpenSegment {
    const before = this.#current
    const size = Math.max(least, this.#nextBytes)
    const memory = new SharedArrayBuffer(size)
    const segment = { id: this.#nextId++, memory, bytes: Buffer.from(memory), end: 0, used: 0 }
    this.#all.set(segment.id, segment)
    this.#bytes += size
    this.#added.push({ id: segment.id, memory })
    // One for a single large object is full at once.
    if (least <= this.#nextBytes) {
      this.#current = segment
      if (before !== undefined && before.used <= 0) this.#drop(before)
    }
    this.#nextBytes = Math.min(2 * this.#nextBytes, SEGMENT_BYTES)
    return segment
  }

  #drop(segment: OpenSegment): void {
    this.#all.delete(segment.id)
    this.#bytes -= segment.bytes.length
    this.#dropped.push(segment.id)
  }
}
