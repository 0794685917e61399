// Where the objects of a collection are in memory that threads share, and how much memory each thread needs for what it knows of them.

import { OutgrownError } from '../../kube/io/followed-bytes.ts'
import { objectAtVersion } from '../core/bytes/object-at-version.ts'
import type { KeptFacts } from '../core/bytes/read-encoding.ts'
import type { ObjectRecord, Segment } from '../core/changes/collection.ts'
import type { KeptMemory } from './kept-memory.ts'

/** About: of facts without any text, and of one label without its text. */
const FACTS_BYTES = 500
const LABEL_BYTES = 64

export class ObjectRecords {
  readonly #segments = new Segments()
  readonly #memory: KeptMemory
  /** Memory in each thread for the facts of all objects that the segments have. */
  #indexBytes = 0
  /** Released once the threads know of the changes. */
  #leaving: ObjectRecord[] = []

  constructor(memory: KeptMemory) {
    this.#memory = memory
  }

  /** Shared memory. */
  get bytes(): number {
    return this.#segments.bytes
  }

  /** The larger of shared memory and the memory of one thread. */
  get most(): number {
    return Math.max(this.#segments.bytes, this.#indexBytes)
  }

  /** For compressed lists: of all threads together, and of each. */
  get compressedBytes(): number {
    return this.#memory.roomOfAll
  }

  get room(): number {
    return this.#memory.room
  }

  /** @param bytes in each gateway thread, if there is so much */
  setRoom(bytes: number): void {
    this.#memory.setRoom(bytes)
  }

  get segments(): readonly Segment[] {
    return this.#segments.all
  }

  /** Copies the bytes. @throws {OutgrownError} if there is no room */
  put(facts: KeptFacts, bytes: Buffer): ObjectRecord {
    const index = this.#indexBytes + indexBytes(facts)
    this.#memory.reach(this.#segments.bytes + this.#segments.growth(bytes.length), index)
    this.#indexBytes = index
    return { facts, ...this.#segments.put(bytes) }
  }

  /** The same object with another resourceVersion. @throws {OutgrownError} if there is no room */
  putAt(record: ObjectRecord, resourceVersion: string): ObjectRecord {
    const kept = { content: this.#segments.read(record), facts: record.facts }
    const { content, facts } = objectAtVersion(kept, resourceVersion)
    return this.put(facts, content)
  }

  /** Whether these are its bytes. */
  has(record: ObjectRecord, bytes: Buffer): boolean {
    return this.#segments.read(record).equals(bytes)
  }

  /** No thread knows of it. */
  release(record: ObjectRecord): void {
    this.#indexBytes -= indexBytes(record.facts)
    this.#segments.release(record)
    this.#memory.reach(this.#segments.bytes, this.#indexBytes)
  }

  /** Nothing is kept any more. */
  end(): void {
    this.#memory.end()
  }

  /** No read finds it any more, once the threads know of the changes. */
  leaves(record: ObjectRecord): void {
    this.#leaving.push(record)
  }

  /** The threads know of all changes. */
  told(): void {
    for (const record of this.#leaving) this.release(record)
    this.#leaving = []
  }

  takeNews(): SegmentNews {
    return this.#segments.takeNews()
  }

  /** Moves what is left in sparse segments. @returns the records that are elsewhere now */
  rewrite(objects: Map<string, ObjectRecord>): readonly ObjectRecord[] {
    const sparse = this.#segments.sparse()
    if (sparse.size === 0) return []
    const moved: ObjectRecord[] = []
    for (const [key, record] of objects) {
      if (!sparse.has(record.segment)) continue
      const at = this.#copy(record)
      // What is sparse now stays so until there is room.
      if (at === undefined) break
      objects.set(key, at)
      this.leaves(record)
      moved.push(at)
    }
    return moved
  }

  /** undefined = there is no room. */
  #copy(record: ObjectRecord): ObjectRecord | undefined {
    try {
      return this.put(record.facts, this.#segments.read(record))
    } catch (error) {
      if (error instanceof OutgrownError) return undefined
      throw error
    }
  }
}

/** About what the facts of an object take in the memory of a thread: many short labels take several times as much as their JSON. */
function indexBytes({ namespace, name, labels, fields }: KeptFacts): number {
  let bytes = FACTS_BYTES + namespace.length + name.length
  for (const [key, value] of Object.entries(labels)) bytes += LABEL_BYTES + key.length + value.length
  for (const value of fields) bytes += value.length
  return bytes
}

// Shared memory for the bytes of objects, which all threads read and the main thread writes: appended to segments, each of which is given up
// when nothing in it is needed any more.

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

interface SegmentNews {
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
