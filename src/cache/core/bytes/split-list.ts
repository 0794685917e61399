// Takes the objects out of the body of a LIST while it arrives: a list may be of any size, and is never held as a whole.

import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import { malformed } from './malformed.ts'
import type { JsonForm } from './object-form.ts'
import {
  BACKSLASH,
  CLOSE_LIST,
  CLOSE_MAP,
  COLON,
  COMMA,
  MAX_JSON_DEPTH,
  OPEN_LIST,
  OPEN_MAP,
  QUOTE,
} from './skip-json.ts'

export interface ListFacts {
  /** `PodList` */
  readonly kind: string
  readonly apiVersion: string
  /** That of the list. */
  readonly resourceVersion: string
  /** '' = this is all. */
  readonly next: string
  readonly form: JsonForm
}

export interface ListLimits {
  /** The largest object that is taken. */
  readonly objectBytes: number
  /** The most objects of a body. */
  readonly objects: number
}

/** kind, apiVersion and metadata of the list, each: a token of a continued list has a name, and some hundred bytes. */
export const MAX_LIST_HEAD_BYTES: number = 64 * 1024
/** Lists have four: kind, apiVersion, metadata, items. */
export const MAX_LIST_FIELDS = 20

/** How an item of a list of Kubernetes' own kinds begins; watches write kind and apiVersion in front of that. */
const BARE = Buffer.from('{"metadata":')
const LIST = 'List'
const FIRST_BYTES = 4096

/** The end of the chunk, as if it was a byte. */
const END = 256
/** 1 = of importance outside of strings, and inside. */
const OUTSIDE = tableOf(QUOTE, OPEN_MAP, CLOSE_MAP, OPEN_LIST, CLOSE_LIST, END)
const INSIDE = tableOf(QUOTE, BACKSLASH, END)

/** What may come next. */
type State =
  | 'open'
  | 'key or end'
  | 'key'
  | 'colon'
  | 'value'
  | 'items'
  | 'item or end'
  | 'item'
  | 'next item'
  | 'next'
  | 'end'

/** One body of a LIST. After an error it must not be fed again. */
export class ListSplitter {
  readonly #limits: ListLimits
  readonly #onObject: (object: Buffer) => void
  #state: State = 'open'
  /** What of the value or key has arrived with earlier chunks. */
  #held: Buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #heldBytes = 0
  /** The value that is being read: whether it has begun, its open brackets, and where in a string it is. */
  #begun = false
  #isScalar = false
  #depth = 0
  #inString = false
  #escaped = false
  #key = ''
  /** The first key tells. */
  #form: JsonForm = 'sorted'
  readonly #head = new Map<string, unknown>()
  /** `{"kind":"Pod","apiVersion":"v1",`, once it is known. */
  #prefix: Buffer | undefined
  /** An object behind its prefix. */
  #whole: Buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #objects = 0
  #hasItems = false

  /** @param onObject gets each object as a watch has it, with kind and apiVersion; the bytes are valid during the call */
  constructor(limits: ListLimits, onObject: (object: Buffer) => void) {
    this.#limits = limits
    this.#onObject = onObject
  }

  /** @throws {MalformedError} also above a limit, and if kind and apiVersion of the objects are not known */
  feed(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      at = this.#begun ? this.#value(chunk, at) : this.#between(chunk, at)
    }
  }

  /** The body has ended. @throws {MalformedError} if it is not complete */
  end(): ListFacts {
    if (this.#state !== 'end') throw malformed('the list ends too early')
    const metadata = this.#head.get('metadata')
    const { resourceVersion, continue: next } = isRecord(metadata) ? metadata : {}
    if (!this.#hasItems) throw malformed('the list has no items')
    return {
      kind: textOf(this.#head.get('kind')),
      apiVersion: textOf(this.#head.get('apiVersion')),
      resourceVersion: textOf(resourceVersion),
      next: textOf(next),
      form: this.#form,
    }
  }

  /** White space, a bracket, a comma or a colon of the list itself, or the begin of a key or value. */
  #between(chunk: Buffer, at: number): number {
    const c = chunk[at] ?? 0
    if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) return at + 1
    switch (this.#state) {
      case 'open':
        return this.#take(c, OPEN_MAP, 'key or end', at)
      case 'colon':
        return this.#take(c, COLON, this.#key === 'items' ? 'items' : 'value', at)
      case 'items':
        this.#hasItems = true
        // Go writes null for a list without items that was never made.
        if (c === 0x6e) return this.#begin(c, 'value', at)
        return this.#take(c, OPEN_LIST, 'item or end', at)
      case 'next':
        return c === CLOSE_MAP ? this.#enter('end', at) : this.#take(c, COMMA, 'key', at)
      case 'next item':
        return c === CLOSE_LIST ? this.#enter('next', at) : this.#take(c, COMMA, 'item', at)
      case 'key or end':
        return c === CLOSE_MAP ? this.#enter('end', at) : this.#beginWith(c, QUOTE, 'key', at)
      case 'key':
        return this.#beginWith(c, QUOTE, 'key', at)
      case 'item or end':
        return c === CLOSE_LIST ? this.#enter('next', at) : this.#beginWith(c, OPEN_MAP, 'item', at)
      case 'item':
        return this.#beginWith(c, OPEN_MAP, 'item', at)
      case 'value':
        return this.#begin(c, 'value', at)
      case 'end':
        throw malformed('the list is followed by something else')
    }
  }

  #take(c: number, expected: number, then: State, at: number): number {
    if (c !== expected) throw malformed('the list is not JSON')
    return this.#enter(then, at)
  }

  #enter(state: State, at: number): number {
    this.#state = state
    return at + 1
  }

  #beginWith(c: number, expected: number, state: State, at: number): number {
    if (c !== expected) throw malformed('the list is not JSON')
    return this.#begin(c, state, at)
  }

  /** The value begins at `at`. */
  #begin(c: number, state: State, at: number): number {
    this.#state = state
    this.#begun = true
    this.#isScalar = c !== QUOTE && c !== OPEN_MAP && c !== OPEN_LIST
    this.#depth = 0
    this.#inString = false
    this.#escaped = false
    this.#heldBytes = 0
    return at
  }

  /** Reads on in the value until it ends, or the chunk. */
  #value(chunk: Buffer, start: number): number {
    const end = this.#endOfValue(chunk, start)
    if (end < 0) {
      this.#hold(chunk, start, chunk.length)
      return chunk.length
    }
    this.#begun = false
    if (this.#heldBytes === 0) this.#done(chunk.subarray(start, end))
    else {
      this.#hold(chunk, start, end)
      this.#done(this.#held.subarray(0, this.#heldBytes))
    }
    return end
  }

  /** -1 = beyond the chunk. Only brackets and strings matter: the rest is checked where the object is read. */
  #endOfValue(chunk: Buffer, start: number): number {
    if (this.#isScalar) return endOfScalar(chunk, start)
    let depth = this.#depth
    let inString = this.#inString
    let at = this.#escaped ? start + 1 : start
    this.#escaped = false
    for (;;) {
      if (inString) {
        let c = chunk[at++] ?? END
        while (INSIDE[c] === 0) c = chunk[at++] ?? END
        if (c === BACKSLASH) {
          this.#escaped = ++at > chunk.length
          continue
        }
        if (c === END) break
        inString = false
        if (depth === 0) return at
      }
      let c = chunk[at++] ?? END
      while (OUTSIDE[c] === 0) c = chunk[at++] ?? END
      if (c === QUOTE) inString = true
      else if (c === OPEN_MAP || c === OPEN_LIST) {
        if (++depth > MAX_JSON_DEPTH) throw malformed(`more than ${MAX_JSON_DEPTH} levels`)
      } else if (c === END) break
      else if (--depth === 0) return at
    }
    this.#depth = depth
    this.#inString = inString
    return -1
  }

  #hold(chunk: Buffer, start: number, end: number): void {
    const bytes = this.#heldBytes + end - start
    if (bytes > this.#mostBytes()) throw this.#tooLarge()
    this.#room(bytes)
    chunk.copy(this.#held, this.#heldBytes, start, end)
    this.#heldBytes = bytes
  }

  #room(bytes: number): void {
    if (bytes <= this.#held.length) return
    const larger = Buffer.allocUnsafe(Math.max(bytes, 2 * this.#held.length))
    this.#held.copy(larger, 0, 0, this.#heldBytes)
    this.#held = larger
  }

  #mostBytes(): number {
    return this.#state === 'item' ? this.#limits.objectBytes : MAX_LIST_HEAD_BYTES
  }

  #tooLarge(): Error {
    return malformed(
      `${this.#state === 'item' ? 'an object' : 'the head of a list'} has more than ${this.#mostBytes()} bytes`,
    )
  }

  #done(value: Buffer): void {
    if (value.length > this.#mostBytes()) throw this.#tooLarge()
    if (this.#state === 'item') this.#object(value)
    else if (this.#state === 'key') {
      this.#key = String(parse(value))
      if (this.#key === 'kind' && this.#head.size === 0 && !this.#hasItems) this.#form = 'declared'
      if (this.#key === 'items' && this.#hasItems) throw malformed('the list has its items twice')
      this.#state = 'colon'
    } else {
      this.#member(parse(value))
      this.#state = 'next'
    }
  }

  #member(value: unknown): void {
    if (this.#head.has(this.#key)) throw malformed('a field of the list is there twice')
    if (this.#head.size === MAX_LIST_FIELDS) throw malformed(`the list has more than ${MAX_LIST_FIELDS} fields`)
    this.#head.set(
      this.#key,
      this.#key === 'kind' || this.#key === 'apiVersion' || this.#key === 'metadata' ? value : undefined,
    )
  }

  #object(item: Buffer): void {
    if (++this.#objects > this.#limits.objects)
      throw malformed(`the list has more than ${this.#limits.objects} objects`)
    this.#state = 'next item'
    if (!item.subarray(0, BARE.length).equals(BARE)) {
      this.#onObject(item)
      return
    }
    this.#prefix ??= prefixOf(this.#head.get('kind'), this.#head.get('apiVersion'))
    const bytes = this.#prefix.length + item.length - 1
    if (bytes > this.#whole.length) this.#whole = Buffer.allocUnsafe(2 * bytes)
    this.#prefix.copy(this.#whole)
    item.copy(this.#whole, this.#prefix.length, 1)
    this.#onObject(this.#whole.subarray(0, bytes))
  }
}

function tableOf(...bytes: readonly number[]): Uint8Array {
  const table = new Uint8Array(END + 1)
  for (const c of bytes) table[c] = 1
  return table
}

/** What a watch of Kubernetes' own kinds has in front of the metadata. @param kind of the list */
function prefixOf(kind: unknown, apiVersion: unknown): Buffer {
  if (typeof kind !== 'string' || typeof apiVersion !== 'string' || !kind.endsWith(LIST) || kind === LIST) {
    throw malformed('kind and apiVersion of the objects of a list are not known')
  }
  const ofItems = JSON.stringify(kind.slice(0, -LIST.length))
  return Buffer.from(`{"kind":${ofItems},"apiVersion":${JSON.stringify(apiVersion)},`)
}

/** The end of a number, true, false or null; -1 = beyond the chunk. */
function endOfScalar(chunk: Buffer, start: number): number {
  for (let at = start; at < chunk.length; at++) {
    const c = chunk[at]
    if (c === COMMA || c === CLOSE_MAP || c === CLOSE_LIST) return at
  }
  return -1
}

/** At most MAX_LIST_HEAD_BYTES. */
function parse(json: Buffer): unknown {
  try {
    return JSON.parse(json.toString())
  } catch {
    throw malformed('the list is not JSON')
  }
}
