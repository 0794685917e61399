// exec and attach over SPDY/3.1 (github.com/moby/spdystream): the client opens a stream for each channel and names it in compressed header fields;
// data frames are not compressed.

import { type ChannelSink, MalformedSession, type SessionChannel, type SessionReader } from './channels.ts'

/**
 * What the compressed header blocks of a client say, all of them so far: they share one zlib stream.
 * @param limit of the answer @throws if it is another kind of data, or longer
 */
export type InflateHeaders = (blocks: Uint8Array, limit: number) => Buffer

/** Streams of a session, of which remotecommand needs five. */
export const MAX_SESSION_STREAMS = 16
/** Compressed header fields of all of them. */
export const MAX_HEADER_BLOCKS = 16 * 1024
/** The same, unpacked. */
export const MAX_HEADER_BYTES = 64 * 1024

export function spdyReader(sink: ChannelSink, inflate: InflateHeaders): SessionReader {
  const streams = new SpdyStreams(inflate)
  const client = new SpdyFrames(sink, streams, FROM_CLIENT, true)
  const server = new SpdyFrames(sink, streams, TO_CLIENT, false)
  return { fromClient: (chunk) => client.read(chunk), toClient: (chunk) => server.read(chunk) }
}

const FROM_CLIENT: ReadonlySet<SessionChannel> = new Set<SessionChannel>(['stdin', 'resize'])
const TO_CLIENT: ReadonlySet<SessionChannel> = new Set<SessionChannel>(['stdout', 'stderr', 'error'])

const HEAD_BYTES = 8
const CONTROL = 0x80
const VERSION = 3
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

/** One direction. */
class SpdyFrames {
  readonly #sink: ChannelSink
  readonly #streams: SpdyStreams
  readonly #channels: ReadonlySet<SessionChannel>
  readonly #isClient: boolean
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headBytes = 0
  /** Bytes of the frame that are still to come. */
  #left = 0
  /** To which a data frame belongs; undefined = it is not looked at. */
  #channel: SessionChannel | undefined
  /** A control frame that is read, as far as it is here. */
  #control: Buffer | undefined
  #controlBytes = 0

  constructor(sink: ChannelSink, streams: SpdyStreams, channels: ReadonlySet<SessionChannel>, isClient: boolean) {
    this.#sink = sink
    this.#streams = streams
    this.#channels = channels
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
    this.#channel = undefined
    this.#control = undefined
    if (((head[0] ?? 0) & CONTROL) === 0) {
      const channel = this.#streams.channelOf(head.readUInt32BE(0) & STREAM_ID)
      this.#channel = channel !== undefined && this.#channels.has(channel) ? channel : undefined
      return
    }
    const type = head.readUInt16BE(2)
    const isKnown = type === SETTINGS || LENGTHS.has(type) || BEFORE_BLOCK.has(type)
    if ((head.readUInt16BE(0) & 0x7fff) !== VERSION || !isKnown) {
      throw new MalformedSession('a frame of another version or type')
    }
    if (!this.#isClient) return
    if (this.#left !== (LENGTHS.get(type) ?? this.#left)) throw new MalformedSession('a frame of another length')
    if (LENGTHS.has(type)) return
    if (this.#left > MAX_HEADER_BLOCKS) throw new MalformedSession('too many header fields')
    this.#control = Buffer.alloc(this.#left)
    this.#controlBytes = 0
  }

  #pass(bytes: Uint8Array): void {
    if (this.#control !== undefined) {
      this.#control.set(bytes, this.#controlBytes)
      this.#controlBytes += bytes.length
    } else if (this.#channel !== undefined && bytes.length > 0) this.#sink(this.#channel, bytes)
  }

  #close(): void {
    this.#headBytes = 0
    const frame = this.#control
    if (frame === undefined) return
    this.#control = undefined
    const type = this.#head.readUInt16BE(2)
    const start = BEFORE_BLOCK.get(type) ?? SETTINGS_HEAD
    if (frame.length < start) throw new MalformedSession('a frame that is too short')
    if (type !== SETTINGS) {
      this.#streams.add(frame.readUInt32BE(0) & STREAM_ID, type === SYN_STREAM, frame.subarray(start))
    } else if (frame.length !== SETTINGS_HEAD + SETTING_BYTES * frame.readUInt32BE(0)) {
      throw new MalformedSession('a frame of another length')
    }
  }
}

const CHANNELS: readonly SessionChannel[] = ['stdin', 'stdout', 'stderr', 'error', 'resize']

class SpdyStreams {
  readonly #inflate: InflateHeaders
  readonly #channels = new Map<number, SessionChannel | undefined>()
  #blocks: Buffer = Buffer.alloc(0)
  #count = 0
  /** Bytes of header fields that were read before. */
  #read = 0

  constructor(inflate: InflateHeaders) {
    this.#inflate = inflate
  }

  /** @throws {MalformedSession} for a stream that was not opened */
  channelOf(stream: number): SessionChannel | undefined {
    if (!this.#channels.has(stream)) throw new MalformedSession('data of a stream that was not opened')
    return this.#channels.get(stream)
  }

  /** @param opens whether the fields are those of a new stream */
  add(stream: number, opens: boolean, block: Uint8Array): void {
    if (++this.#count > MAX_SESSION_STREAMS) throw new MalformedSession('too many streams')
    if (this.#blocks.length + block.length > MAX_HEADER_BLOCKS) throw new MalformedSession('too many header fields')
    this.#blocks = Buffer.concat([this.#blocks, block])
    // All of them again: there are few, and a zlib stream that is kept open can only be read in other threads.
    const all = this.#inflated()
    const fields = all.subarray(this.#read)
    this.#read = all.length
    const type = fieldOf(fields, 'streamtype')
    if (!opens) return
    if (this.#channels.has(stream)) throw new MalformedSession('a stream that is opened twice')
    this.#channels.set(
      stream,
      CHANNELS.find((channel) => channel === type),
    )
  }

  #inflated(): Buffer {
    try {
      return this.#inflate(this.#blocks, MAX_HEADER_BYTES)
    } catch {
      throw new MalformedSession('header fields that cannot be unpacked')
    }
  }
}

/**
 * The first value of a field; undefined = there is none. Names are in lower case, values separated by NUL. Nothing may follow the last field: a Go server
 * would read it as the first of the next frame.
 */
function fieldOf(block: Buffer, wanted: string): string | undefined {
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
  let found: string | undefined
  for (let left = number(); left > 0; left--) {
    const name = text()
    const value = text()
    if (name !== wanted) continue
    if (found !== undefined) throw new MalformedSession('a stream with two types')
    const end = value.indexOf('\0')
    found = end < 0 ? value : value.slice(0, end)
  }
  if (at < block.length) throw new MalformedSession('more than its header fields')
  return found
}
