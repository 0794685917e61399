// Takes the objects out of the body of a LIST in Protobuf while it arrives, and the object out of an event of a watch.

import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { PROTOBUF_MAGIC, readTypeMeta, UNKNOWN } from '../../../kube/core/objects/protobuf-envelope.ts'
import type { EventType } from './answers.ts'
import { MalformedError, malformed } from './malformed.ts'
import type { TypeMeta } from './object-form.ts'
import { EVENT, LIST, LIST_META, protobufObject } from './protobuf-answers.ts'
import { type ListLimits, MAX_LIST_HEAD_BYTES } from './split-list.ts'
import type { EventBytes } from './watch-event.ts'

const LENGTH_DELIMITED = 2
const FIRST_BYTES = 4096
/** Lengths of more bytes are beyond every limit. */
const MAX_VARINT_BYTES = 5
const LIST_SUFFIX = 'List'

export interface ProtobufListFacts extends TypeMeta {
  readonly resourceVersion: string
  /** '' = this is all. */
  readonly next: string
}

/** Bytes that have arrived and are not read yet. Each is copied at most three times. */
class Arrived {
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #start = 0
  #end = 0

  get length(): number {
    return this.#end - this.#start
  }

  add(chunk: Buffer): void {
    const { length } = this
    if (this.#end + chunk.length > this.#bytes.length) {
      const needed = length + chunk.length
      const target = 2 * needed > this.#bytes.length ? Buffer.allocUnsafe(2 * needed) : this.#bytes
      this.#bytes.copy(target, 0, this.#start, this.#end)
      this.#bytes = target
      this.#start = 0
      this.#end = length
    }
    chunk.copy(this.#bytes, this.#end)
    this.#end += chunk.length
  }

  /** A view of the next bytes, which are valid until more arrive. */
  take(bytes: number): Buffer {
    const view = this.#bytes.subarray(this.#start, this.#start + bytes)
    this.#start += bytes
    return view
  }

  at(index: number): number {
    return this.#bytes[this.#start + index] ?? 0
  }
}

/** One body of a LIST. After an error it must not be fed again. */
export class ProtobufListSplitter {
  readonly #limits: ListLimits
  readonly #onObject: (object: Buffer) => void
  readonly #arrived = new Arrived()
  #hasMagic = false
  /** Bytes of the list's message that are still to come; undefined = it has not begun. */
  #left: number | undefined
  #inList = false
  /** The number and length of the field whose content is to come. */
  #field: { readonly number: number; readonly length: number } | undefined
  #type: TypeMeta | undefined
  #itemType: TypeMeta | undefined
  #resourceVersion = ''
  #next = ''
  #objects = 0

  /** @param onObject gets each object as a watch has it, in an envelope of its own; the bytes are its own */
  constructor(limits: ListLimits, onObject: (object: Buffer) => void) {
    this.#limits = limits
    this.#onObject = onObject
  }

  /** @throws {MalformedError} also above a limit */
  feed(chunk: Buffer): void {
    this.#arrived.add(chunk)
    while (asMalformed(() => this.#step()));
  }

  /** The body has ended. @throws {MalformedError} if it is not complete */
  end(): ProtobufListFacts {
    if (this.#left !== 0 || this.#field !== undefined || this.#arrived.length > 0 || this.#type === undefined) {
      throw malformed('the list ends too early')
    }
    return { ...this.#type, resourceVersion: this.#resourceVersion, next: this.#next }
  }

  /** Whether something was read. */
  #step(): boolean {
    if (!this.#hasMagic) return this.#magic()
    if (this.#field === undefined) return this.#head()
    const { number, length } = this.#field
    if (this.#arrived.length < length) return false
    this.#field = undefined
    const content = this.#arrived.take(length)
    if (this.#inList) this.#listField(number, content)
    else this.#envelopeField(number, content)
    return true
  }

  #magic(): boolean {
    if (this.#arrived.length < PROTOBUF_MAGIC.length) return false
    if (!this.#arrived.take(PROTOBUF_MAGIC.length).equals(PROTOBUF_MAGIC)) throw malformed('the list is not protobuf')
    this.#hasMagic = true
    return true
  }

  /** Tag and length of a field. */
  #head(): boolean {
    if (this.#inList && this.#left === 0) this.#inList = false
    if (this.#arrived.length === 0) return false
    const tag = readVarint(this.#arrived, 0)
    if (tag === undefined) return false
    const length = readVarint(this.#arrived, tag.bytes)
    if (length === undefined) return false
    const headBytes = tag.bytes + length.bytes
    if (tag.value % 8 !== LENGTH_DELIMITED) throw malformed('a field of the list is neither a string nor a message')
    const number = Math.floor(tag.value / 8)
    this.#arrived.take(headBytes)
    if (this.#inList) {
      this.#left = (this.#left ?? 0) - headBytes - length.value
      if (this.#left < 0) throw malformed('a length goes beyond the end')
      this.#check(number === LIST.items, length.value)
    } else if (number === UNKNOWN.raw) {
      if (this.#left !== undefined) throw malformed('the list has two messages')
      this.#left = length.value
      this.#inList = true
      return true
    } else this.#check(false, length.value)
    this.#field = { number, length: length.value }
    return true
  }

  #check(isItem: boolean, length: number): void {
    if (!isItem && length > MAX_LIST_HEAD_BYTES) {
      throw malformed(`the head of a list has more than ${MAX_LIST_HEAD_BYTES} bytes`)
    }
    if (!isItem) return
    const { objectBytes, objects } = this.#limits
    if (length > objectBytes) throw malformed(`an object has more than ${objectBytes} bytes`)
    if (++this.#objects > objects) throw malformed(`the list has more than ${objects} objects`)
  }

  #envelopeField(number: number, content: Buffer): void {
    if (number === UNKNOWN.contentEncoding && content.length > 0) throw malformed('content encodings are not supported')
    if (number === UNKNOWN.typeMeta) this.#type = readTypeMeta(new ProtobufReader(content))
  }

  #listField(number: number, content: Buffer): void {
    if (number === LIST.metadata) this.#metadata(new ProtobufReader(content))
    if (number !== LIST.items) return
    this.#itemType ??= itemType(this.#type)
    this.#onObject(protobufObject(this.#itemType, content))
  }

  #metadata(listMeta: ProtobufReader): void {
    while (listMeta.next()) {
      if (listMeta.number === LIST_META.resourceVersion) this.#resourceVersion = listMeta.text()
      if (listMeta.number === LIST_META.continue) this.#next = listMeta.text()
    }
  }
}

function itemType(list: TypeMeta | undefined): TypeMeta {
  if (list === undefined || !list.kind.endsWith(LIST_SUFFIX) || list.kind === LIST_SUFFIX || list.apiVersion === '') {
    throw malformed('kind and apiVersion of the objects of a list are not known')
  }
  return { kind: list.kind.slice(0, -LIST_SUFFIX.length), apiVersion: list.apiVersion }
}

/** undefined = more bytes have to arrive. */
function readVarint(arrived: Arrived, from: number): { readonly value: number; readonly bytes: number } | undefined {
  let value = 0
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    if (from + i >= arrived.length) return undefined
    const byte = arrived.at(from + i)
    value += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return { value, bytes: i + 1 }
  }
  throw malformed('a length is beyond every limit')
}

const TYPES: ReadonlySet<string> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] satisfies EventType[])

/** @param frame without its length @throws {MalformedError} */
export function readFrame(frame: Buffer): EventBytes {
  return asMalformed(() => {
    let type = ''
    let object: Buffer | undefined
    const event = new ProtobufReader(frame)
    while (event.next()) {
      if (event.number === EVENT.type) type = event.text()
      if (event.number !== EVENT.object) continue
      const raw = new ProtobufReader(event.bytes(), event)
      while (raw.next()) if (raw.number === EVENT.raw) object = raw.bytes()
    }
    if (!TYPES.has(type) || object === undefined) throw malformed('it is not an event of a watch')
    return { type: type as EventType, object }
  })
}

function asMalformed<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof MalformedError || !(error instanceof SyntaxError)) throw error
    throw malformed(error.message)
  }
}
