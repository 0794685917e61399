// HTTP/2 of an attacker: frames that were made before, and a reader that only counts.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Target } from '../attack.ts'
import { attackConnections, type ConnectionOptionsOfAttack, type Wire } from './connections.ts'

/** A small object of the upstream. */
export const SMALL_PATH = '/api/v1/namespaces/default/configmaps/small'
const FRAME_HEADER_BYTES = 9
const LARGEST_WINDOW = 2 ** 31 - 1
const LAST_STREAM = 2 ** 31 - 1
/** Credit for DATA is given back in such parts. */
const CREDIT_BYTES = 2 ** 29

export interface Http2Options extends ConnectionOptionsOfAttack {
  /** SETTINGS beside a table of size 0 and windows of 2^31 - 1. */
  readonly settings?: readonly (readonly [number, number])[]
  /** Whether the window of the connection is opened. Default true. */
  readonly opensWindow?: boolean
  /** Whether SETTINGS and PING are acknowledged. Default true. */
  readonly acknowledges?: boolean
  /** Whether what comes is read. Default true. */
  readonly reads?: boolean
}

/** What is done with one connection of HTTP/2. */
export interface Http2Conversation {
  /** The next frames to send; undefined: none until `more` is called. */
  next?(): Buffer | undefined
  /** A stream was answered to its end, or reset. */
  ended?(stream: number): void
  /** The head of an answer has come. */
  head?(stream: number, status: number): void
  /** So many bytes of DATA have come, padding included. */
  data?(stream: number, bytes: number): void
}

export async function attackHttp2(
  target: Target,
  signal: AbortSignal,
  options: Http2Options,
  talk: (connection: HostileHttp2) => Http2Conversation,
): Promise<void> {
  await attackConnections(target, signal, { alpn: 'h2', ...options }, (wire) => {
    const connection = new HostileHttp2(target, wire, options)
    const conversation = talk(connection)
    connection.conversation = conversation
    if (options.reads === false) wire.socket.pause()
    return {
      next: () => connection.takeUrgent() ?? conversation.next?.(),
      receive: (bytes) => connection.receive(bytes),
    }
  })
}

export class HostileHttp2 {
  readonly wire: Wire
  conversation: Http2Conversation = {}
  readonly #target: Target
  readonly #acknowledges: boolean
  #urgent: Buffer[]
  #rest: Buffer = Buffer.alloc(0)
  #nextStream = 1
  #uncredited = 0

  constructor(target: Target, wire: Wire, options: Http2Options) {
    this.#target = target
    this.wire = wire
    this.#acknowledges = options.acknowledges !== false
    const settings = new Map([
      [h2.HEADER_TABLE_SIZE, 0],
      [h2.INITIAL_WINDOW_SIZE, LARGEST_WINDOW],
      ...(options.settings ?? []),
    ])
    this.#urgent = [Buffer.from(h2.PREFACE), h2.settings(...settings)]
    if (options.opensWindow !== false) this.#urgent.push(h2.windowUpdate(0, LARGEST_WINDOW - 65_535))
  }

  /** The id of a new stream. The connection ends behind the last one. */
  stream(): number {
    const stream = this.#nextStream
    this.#nextStream += 2
    if (stream >= LAST_STREAM - 2) this.wire.close()
    return stream
  }

  /** Whether a stream was opened. */
  begun(): boolean {
    return this.#nextStream > 1
  }

  /** Continues behind the stream with this id. */
  skipTo(stream: number): void {
    this.#nextStream = stream
  }

  /** Frames of `count` new streams, in one piece. */
  batch(count: number, frames: (stream: number) => Buffer): Buffer {
    return Buffer.concat(Array.from({ length: count }, () => frames(this.stream())))
  }

  /** Sent before anything else. */
  send(...frames: readonly Buffer[]): void {
    this.#urgent.push(...frames)
    this.wire.more()
  }

  takeUrgent(): Buffer | undefined {
    if (this.#urgent.length === 0) return undefined
    const bytes = Buffer.concat(this.#urgent)
    this.#urgent = []
    return bytes
  }

  receive(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    let at = 0
    while (at + FRAME_HEADER_BYTES <= all.length) {
      const end = at + FRAME_HEADER_BYTES + all.readUIntBE(at, 3)
      if (end > all.length) break
      const payload = all.subarray(at + FRAME_HEADER_BYTES, end)
      this.#frame(all[at + 3] ?? 0, all[at + 4] ?? 0, all.readUInt32BE(at + 5), payload)
      at = end
    }
    this.#rest = at === all.length ? Buffer.alloc(0) : Buffer.from(all.subarray(at))
  }

  #frame(type: number, flags: number, stream: number, payload: Buffer): void {
    const { answers } = this.#target
    switch (type) {
      case h2.HEADERS:
        this.#head(stream, payload)
        break
      case h2.DATA:
        this.#credit(payload.length)
        this.conversation.data?.(stream, payload.length)
        break
      case h2.RST_STREAM:
        answers.frame('RST_STREAM', payload.readUInt32BE(0))
        this.conversation.ended?.(stream)
        return
      case h2.GOAWAY:
        answers.frame('GOAWAY', payload.readUInt32BE(4))
        return
      case h2.SETTINGS:
        if ((flags & h2.ACK) === 0 && this.#acknowledges) this.send(h2.frame(h2.SETTINGS, h2.ACK, 0))
        return
      case h2.PING:
        if ((flags & h2.ACK) === 0 && this.#acknowledges) this.send(h2.frame(h2.PING, h2.ACK, 0, Buffer.from(payload)))
        return
      default:
        return
    }
    if ((flags & h2.END_STREAM) !== 0) this.conversation.ended?.(stream)
  }

  #head(stream: number, block: Buffer): void {
    const status = statusOf(block)
    if (status === undefined) return // trailers
    this.#target.answers.count(String(status))
    this.conversation.head?.(stream, status)
  }

  #credit(bytes: number): void {
    this.#uncredited += bytes
    if (this.#uncredited < CREDIT_BYTES) return
    this.send(h2.windowUpdate(0, this.#uncredited))
    this.#uncredited = 0
  }
}

function statusOf(block: Buffer): number | undefined {
  try {
    return h2.statusOf(block)
  } catch {
    return undefined
  }
}

/** The header block of a request. Fields: name, value, ... */
export function head(target: Target, method: string, path: string, ...fields: readonly string[]): Buffer {
  return h2.headerBlock([':method', method, ':scheme', 'https', ':authority', target.host, ':path', path, ...fields])
}

/** A request that was made before, under any stream. One that is larger than a frame has CONTINUATIONs. */
export function request(block: Buffer, flags: number = h2.END_STREAM): (stream: number) => Buffer {
  const made = h2.headersFrames(1, block, flags)
  const heads: number[] = []
  for (let at = 0; at < made.length; at += FRAME_HEADER_BYTES + made.readUIntBE(at, 3)) heads.push(at + 5)
  return (stream) => {
    const frames = Buffer.from(made)
    for (const at of heads) frames.writeUInt32BE(stream, at)
    return frames
  }
}

/** Another one of these requests with each stream. */
export function inTurn(requests: readonly ((stream: number) => Buffer)[]): (stream: number) => Buffer {
  let n = 0
  return (stream) => requests[n++ % requests.length]?.(stream) ?? Buffer.alloc(0)
}

/** Asks for these, as fast as they are answered: as many streams at once as `streams` says. */
export function closedLoop(
  connection: HostileHttp2,
  streams: number,
  frames: (stream: number) => Buffer,
): Http2Conversation {
  let isOpen = 0
  return {
    next() {
      if (isOpen >= streams) return undefined
      const count = Math.min(streams - isOpen, 64)
      isOpen += count
      return connection.batch(count, frames)
    },
    ended() {
      isOpen--
      // A few together: as a client does that has read several answers at once.
      if (isOpen <= streams * 0.75 || streams < 8) connection.wire.more()
    },
  }
}
