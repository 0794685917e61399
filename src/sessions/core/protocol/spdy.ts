// Sessions over SPDY/3.1 (github.com/moby/spdystream): the client opens streams and says in compressed header fields what each is for; data frames are
// not compressed.

import { MalformedSession, type SessionReader, type TakeBytes } from './channels.ts'

/** What the next compressed header block of a client says: they share one zlib stream. @throws {MalformedSession} if it is something else, or too much */
export type InflateHeaders = (block: Uint8Array) => Buffer

/** The header fields of a stream (SPDY protocol, draft 3.1, section 2.6.10): the first value of each, by name in lower case. */
export type HeaderFields = ReadonlyMap<string, string>

/** What becomes of the bytes of a stream. */
export interface SpdyStream {
  readonly fromClient: TakeBytes
  readonly toClient: TakeBytes
  /** Neither side sends any more of it. */
  onClosed(): void
}

/** How a session uses streams. */
export interface SpdyUse {
  /** Streams that are open at a time. */
  readonly maxStreams: number
  /** @returns undefined for a stream that is not looked at @throws {MalformedSession} */
  open(id: number, fields: HeaderFields): SpdyStream | undefined
}

/** Compressed header fields of a stream. */
export const MAX_HEADER_BLOCK = 16 * 1024

/** @param inflate of this session alone */
export function spdyReader(use: SpdyUse, inflate: InflateHeaders): SessionReader {
  const streams = new SpdyStreams(use, inflate)
  const client = new SpdyFrames(streams, true)
  const server = new SpdyFrames(streams, false)
  return { fromClient: (chunk) => client.read(chunk), toClient: (chunk) => server.read(chunk) }
}

const HEAD_BYTES = 8
const CONTROL = 0x80
const VERSION = 3
/** The sender sends no more of this stream. */
const FIN = 1
const SYN_STREAM = 1
const SYN_REPLY = 2
const RST_STREAM = 3
const SETTINGS = 4
const PING = 6
const GOAWAY = 7
const HEADERS = 8
const WINDOW_UPDATE = 9
/** Bytes of a control frame in front of its header block. */
const BEFORE_BLOCK: ReadonlyMap<number, number> = new Map([
  [SYN_STREAM, 10],
  [SYN_REPLY, 4],
  [HEADERS, 4],
])
/**
 * Bytes of the other control frames. A Go server reads as many, whatever the length of the frame says: of another length, the same bytes would be other
 * frames to it (spdy/read.go).
 */
const LENGTHS: ReadonlyMap<number, number> = new Map([
  [RST_STREAM, 8],
  [PING, 4],
  [GOAWAY, 8],
  [WINDOW_UPDATE, 8],
])
/** A number of settings, which have as many bytes each. */
const SETTINGS_HEAD = 4
const SETTING_BYTES = 8
const STREAM_ID = 0x7fff_ffff
/** Between the numbers of two streams of a client: a Go server takes none in between. */
const ID_STEP = 2

/** One direction. */
class SpdyFrames {
  readonly #streams: SpdyStreams
  readonly #isClient: boolean
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headBytes = 0
  /** Bytes of the frame that are still to come. */
  #left = 0
  /** To which a data frame belongs; undefined = it is not looked at. */
  #stream: OpenStream | undefined
  /** A control frame that is read, as far as it is here. */
  #control: Buffer | undefined
  #controlBytes = 0

  constructor(streams: SpdyStreams, isClient: boolean) {
    this.#streams = streams
    this.#isClient = isClient
  }

  read(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#headBytes < HEAD_BYTES) {
        this.#head[this.#headBytes++] = chunk[at++] ?? 0
        if (this.#headBytes === HEAD_BYTES) this.#open()
      } else {
        const end = Math.min(chunk.length, at + this.#left)
        this.#left -= end - at
        this.#pass(chunk.subarray(at, end))
        at = end
      }
      if (this.#headBytes === HEAD_BYTES && this.#left === 0) this.#close()
    }
  }

  #open(): void {
    const head = this.#head
    this.#left = head.readUIntBE(5, 3)
    this.#control = undefined
    this.#stream = this.#isControl ? undefined : this.#streams.of(head.readUInt32BE(0) & STREAM_ID)
    if (!this.#isControl) return
    const type = head.readUInt16BE(2)
    const isKnown = type === SETTINGS || LENGTHS.has(type) || BEFORE_BLOCK.has(type)
    if ((head.readUInt16BE(0) & 0x7fff) !== VERSION || !isKnown) {
      throw new MalformedSession('a frame of another version or type')
    }
    // Fields of a server say nothing that is needed.
    if (!this.#isClient && type !== RST_STREAM) return
    if (type === SYN_REPLY || (type === HEADERS && this.#isLast)) {
      // A Go server overlooks an end there, once it has replied itself: what the client sends behind it would be served.
      throw new MalformedSession('a reply of a client, or further header fields that end a stream')
    }
    if (this.#left !== (LENGTHS.get(type) ?? this.#left)) throw new MalformedSession('a frame of another length')
    if (type === GOAWAY) this.#streams.isEnding = true
    if (LENGTHS.has(type) && type !== RST_STREAM) return
    if (this.#left > MAX_HEADER_BLOCK) throw new MalformedSession('too many header fields')
    this.#control = Buffer.alloc(this.#left)
    this.#controlBytes = 0
  }

  get #isLast(): boolean {
    return ((this.#head[4] ?? 0) & FIN) !== 0
  }

  get #isControl(): boolean {
    return ((this.#head[0] ?? 0) & CONTROL) !== 0
  }

  #pass(bytes: Uint8Array): void {
    if (this.#control !== undefined) {
      this.#control.set(bytes, this.#controlBytes)
      this.#controlBytes += bytes.length
    } else if (bytes.length > 0) this.#stream?.pass(bytes, this.#isClient)
  }

  #close(): void {
    this.#headBytes = 0
    if (!this.#isControl) {
      if (this.#isLast) this.#streams.finish(this.#head.readUInt32BE(0) & STREAM_ID, this.#isClient)
      return
    }
    const frame = this.#control
    if (frame === undefined) return
    this.#control = undefined
    const type = this.#head.readUInt16BE(2)
    const start = BEFORE_BLOCK.get(type) ?? SETTINGS_HEAD
    if (frame.length < start) throw new MalformedSession('a frame that is too short')
    const id = frame.readUInt32BE(0) & STREAM_ID
    if (type === RST_STREAM) this.#streams.reset(id)
    else if (type !== SETTINGS) {
      this.#streams.read(id, type === SYN_STREAM, frame.subarray(start))
      if (this.#isLast) this.#streams.finish(id, true)
    } else if (frame.length !== SETTINGS_HEAD + SETTING_BYTES * frame.readUInt32BE(0)) {
      throw new MalformedSession('a frame of another length')
    }
  }
}

/** A stream that at least one side may send on. */
class OpenStream {
  readonly #stream: SpdyStream | undefined
  #clientIsDone = false
  #serverIsDone = false

  constructor(stream: SpdyStream | undefined) {
    this.#stream = stream
  }

  get isClosed(): boolean {
    return this.#clientIsDone && this.#serverIsDone
  }

  /** The other side drops what comes behind the end of a stream. */
  pass(bytes: Uint8Array, isClient: boolean): void {
    if (isClient && !this.#clientIsDone) this.#stream?.fromClient?.(bytes)
    else if (!isClient && !this.#serverIsDone) this.#stream?.toClient?.(bytes)
  }

  finish(isClient: boolean): void {
    if (isClient) this.#clientIsDone = true
    else this.#serverIsDone = true
  }

  close(): void {
    this.#clientIsDone = true
    this.#serverIsDone = true
    this.#stream?.onClosed()
  }
}

class SpdyStreams {
  readonly #use: SpdyUse
  readonly #inflate: InflateHeaders
  readonly #open = new Map<number, OpenStream>()
  /** The number of the newest one: numbers grow. */
  #last = 1 - ID_STEP
  /** The client has announced that it opens no more. */
  isEnding = false

  constructor(use: SpdyUse, inflate: InflateHeaders) {
    this.#use = use
    this.#inflate = inflate
  }

  /** undefined = it is closed: the other side drops what was on its way then. @throws {MalformedSession} for a stream that was not opened */
  of(id: number): OpenStream | undefined {
    if (id > this.#last || id === 0) throw new MalformedSession('data of a stream that was not opened')
    return this.#open.get(id)
  }

  /** Header fields of the client. @param opens whether they are those of a new stream */
  read(id: number, opens: boolean, block: Uint8Array): void {
    const fields = readFields(this.#inflate(block))
    if (!opens) return
    // A Go server refuses these, and drops what is sent on them.
    if (id < this.#last + ID_STEP) throw new MalformedSession('a stream that is opened twice, or out of order')
    if (this.isEnding) throw new MalformedSession('a stream after the last one')
    if (this.#open.size >= this.#use.maxStreams) throw new MalformedSession('too many streams')
    this.#last = id
    this.#open.set(id, new OpenStream(this.#use.open(id, fields)))
  }

  finish(id: number, isClient: boolean): void {
    const stream = this.#open.get(id)
    stream?.finish(isClient)
    if (stream?.isClosed === true) this.reset(id)
  }

  reset(id: number): void {
    const stream = this.#open.get(id)
    if (!this.#open.delete(id)) return
    stream?.close()
  }
}

/** Nothing may follow the last field: a Go server would read it as the first of the next frame. @throws {MalformedSession} */
function readFields(block: Buffer): HeaderFields {
  let at = 0
  const number = (): number => {
    if (at + 4 > block.length) throw new MalformedSession('header fields that break off')
    at += 4
    return block.readUInt32BE(at - 4)
  }
  const text = (): string => {
    const length = number()
    if (length > block.length - at) throw new MalformedSession('header fields that break off')
    at += length
    return block.toString('latin1', at - length, at)
  }
  const fields = new Map<string, string>()
  for (let left = number(); left > 0; left--) {
    const name = text()
    const value = text()
    if (fields.has(name)) throw new MalformedSession('a header field that is there twice')
    // Values are separated by NUL.
    const end = value.indexOf('\0')
    fields.set(name, end < 0 ? value : value.slice(0, end))
  }
  if (at < block.length) throw new MalformedSession('more than its header fields')
  return fields
}
