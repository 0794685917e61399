// HEADERS and CONTINUATION from the peer (RFC 9113 sections 6.2 and 6.10): whole header blocks, decoded in the order in which
// they arrive.

import type { Budget } from '../kit/api/limits/budget.ts'
import { ChunkQueue } from './chunk-queue.ts'
import type { Http2Counters } from './counters.ts'
import type { FrameHost } from './frame-host.ts'
import * as frame from './frames.ts'
import { COMPRESSION, DECODED, type HpackDecoder, MALFORMED, TOO_LARGE } from './hpack/decoder.ts'
import { blockScratch } from './hpack/scratch.ts'
import type { Http2Limits } from './limits.ts'

/** Grants the memory for incomplete heads. */
export interface HeadMemory {
  /** Sets the memory in use to `bytes`; 0 = release it. Undefined = granted, otherwise the reason why not: the connection ends. */
  hold(bytes: number): { readonly message: string } | undefined
}

/** Receives the heads. */
export interface HeaderHost extends FrameHost {
  /** A whole header block; `outcome` is the decoder's, which holds the fields. */
  onHead(id: number, end: boolean, outcome: number): void
}

const { FLAG_END_STREAM, FLAG_END_HEADERS, FLAG_PADDED, FLAG_PRIORITY, LARGEST_STREAM_ID } = frame
const { PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR } = frame

/** A large list from a much smaller block is a decompression bomb (CVE-2016-6581): we would have to encode all its octets for upstream. */
const BOMB_FACTOR = 8
/** Any list may expand to this size. */
const UNPACKED_BYTES = 64 * 1024

export class HeaderFrames {
  readonly #host: HeaderHost
  readonly #decoder: HpackDecoder
  readonly #counters: Http2Counters
  readonly #emptyFrames: Budget
  readonly #maxListBytes: number
  readonly #maxBlockBytes: number
  readonly #block: HeaderBlock = new HeaderBlock()
  readonly #memory: HeadMemory | undefined
  /** The open block is being skipped. */
  #skipping = false
  /** Memory of a partial frame. */
  #frameBytes = 0
  /** The stream depends on itself (RFC 7540 section 5.3.1): RFC 9113 removed priorities, but some peers still send them. */
  #broken = false

  constructor(
    host: HeaderHost,
    decoder: HpackDecoder,
    counters: Http2Counters,
    emptyFrames: Budget,
    { maxHeaderListBytes, blockSlackBytes }: Http2Limits,
    memory: HeadMemory | undefined,
  ) {
    this.#host = host
    this.#decoder = decoder
    this.#counters = counters
    this.#emptyFrames = emptyFrames
    this.#maxListBytes = maxHeaderListBytes
    this.#maxBlockBytes = maxHeaderListBytes + blockSlackBytes
    this.#memory = memory
  }

  /** The stream of the open header block; 0 = none. */
  get open(): number {
    return this.#block.stream
  }

  /** When it was opened; -1 = none is open. */
  get openSinceMs(): number {
    return this.#block.stream === 0 ? -1 : this.#block.sinceMs
  }

  /** Ignores further frames. */
  stop(): void {
    this.#frameBytes = 0
    this.#clear()
  }

  #clear(): void {
    this.#skipping = false
    this.#block.clear()
    this.#memory?.hold(this.#frameBytes)
  }

  /** A large frame is incomplete and takes `bytes`; 0 = it was handled. False: out of memory, and the connection is over. */
  holdFrame(bytes: number): boolean {
    this.#frameBytes = bytes
    return this.#hasRoomFor(0)
  }

  /** Whether this many more octets of a block may be kept; otherwise the connection is over. */
  #hasRoomFor(octets: number): boolean {
    const refusal = this.#memory?.hold(this.#frameBytes + this.#block.memoryWith(octets))
    if (refusal === undefined) return true
    this.#host.abuse('openHeads', refusal.message)
    return false
  }

  onHeaders(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    const host = this.#host
    if (id === 0) {
      host.fail(PROTOCOL_ERROR, 'HEADERS on stream 0')
      return
    }
    let from = payload
    let to = payload + length
    if ((flags & FLAG_PADDED) !== 0) {
      if (length === 0) {
        host.fail(FRAME_SIZE_ERROR, 'padded HEADERS without a padding length')
        return
      }
      to -= bytes[from++] ?? 0
    }
    if ((flags & FLAG_PRIORITY) !== 0) {
      if (payload + length - from < 5) {
        host.fail(FRAME_SIZE_ERROR, 'HEADERS too short for its priority')
        return
      }
      this.#broken = (frame.readUint32(bytes, from) & LARGEST_STREAM_ID) === id
      from += 5
    }
    if (to < from) {
      host.fail(PROTOCOL_ERROR, 'padding longer than the frame')
      return
    }
    const end = (flags & FLAG_END_STREAM) !== 0
    if ((flags & FLAG_END_HEADERS) !== 0) {
      this.#onBlock(id, end, bytes, from, to)
      return
    }
    if (to === from && !this.#emptyFrames.take(host.nowMs)) {
      host.abuse('emptyFrames')
      return
    }
    if (this.#hasRoomFor(to - from)) this.#block.begin(id, end, bytes, from, to, host.nowMs)
  }

  onContinuation(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    const host = this.#host
    const block = this.#block
    if (id === 0 || block.stream !== id) {
      host.fail(PROTOCOL_ERROR, 'CONTINUATION without a header block')
      return
    }
    if (!this.#hasRoomFor(length)) return
    if (!block.add(bytes, payload, payload + length, this.#maxBlockBytes)) {
      host.abuse('continuationFlood')
      return
    }
    const isLast = (flags & FLAG_END_HEADERS) !== 0
    if (this.#skipping || (!host.isServer && block.bytes > this.#maxListBytes)) this.#skip(id, isLast)
    else if (isLast) this.#onBlock(id, block.end, block.whole(), 0, block.bytes)
    else if (length === 0 && !this.#emptyFrames.take(host.nowMs)) host.abuse('emptyFrames')
  }

  /**
   * The block exceeds the largest list, so its list is too large. It is skipped as it arrives: doing it all at once would block the
   * thread for a fifth of a second.
   */
  #skip(id: number, isLast: boolean): void {
    const block = this.#block
    this.#skipping = true
    const rest = this.#decoder.skip(block.whole(), 0, block.bytes)
    if (rest < 0) {
      this.#host.fail(COMPRESSION_ERROR, 'invalid header block')
      return
    }
    block.drop(rest)
    this.#memory?.hold(this.#frameBytes + block.memoryWith(0))
    if (!isLast) return
    const outcome = this.#decoder.endSkip(block.bytes === 0)
    const { end } = block
    this.#clear()
    this.#onOutcome(id, end, outcome)
  }

  #onBlock(id: number, end: boolean, bytes: Buffer, from: number, to: number): void {
    const decoder = this.#decoder
    let outcome: number = decoder.decode(bytes, from, to, this.#maxListBytes)
    if (this.#block.stream !== 0) this.#clear()
    const isLarge = outcome === DECODED && this.#host.isServer && decoder.listBytes > UNPACKED_BYTES
    if (isLarge && decoder.listBytes > (to - from) * BOMB_FACTOR) outcome = TOO_LARGE
    if (outcome === TOO_LARGE && (to - from) * BOMB_FACTOR < this.#maxListBytes) this.#counters.hpackBomb++
    this.#onOutcome(id, end, outcome)
  }

  #onOutcome(id: number, end: boolean, outcome: number): void {
    const broken = this.#broken
    this.#broken = false
    if (outcome === COMPRESSION) this.#host.fail(COMPRESSION_ERROR, 'invalid header block')
    else this.#host.onHead(id, end, broken ? MALFORMED : outcome)
  }
}

// A header block in several frames: HEADERS and CONTINUATION (RFC 9113 section 6.10). Kept in pooled memory.

/** Frames per block. If large blocks are allowed, one more for each of these octets. */
const MAX_CONTINUATIONS = 128
const CONTINUATION_BYTES = 8192

class HeaderBlock {
  /** Its stream; 0 = no block is open. */
  stream = 0
  /** Whether its HEADERS frame has END_STREAM. */
  end = false
  sinceMs = 0
  readonly #pieces: ChunkQueue = new ChunkQueue()
  #frames = 0
  /** Octets dropped. */
  #dropped = 0

  /** Octets so far, without those dropped. */
  get bytes(): number {
    return this.#pieces.bytes
  }

  /** Memory in use with this many more octets. */
  memoryWith(octets: number): number {
    return this.#pieces.memory + this.#pieces.growth(octets)
  }

  begin(stream: number, end: boolean, bytes: Buffer, from: number, to: number, nowMs: number): void {
    this.stream = stream
    this.end = end
    this.sinceMs = nowMs
    this.#frames = 0
    this.#dropped = 0
    this.#pieces.push(bytes.subarray(from, to))
  }

  /** False when there are too many frames, or more bytes than `maxBytes`. */
  add(bytes: Buffer, from: number, to: number, maxBytes: number): boolean {
    const maxFrames = Math.max(MAX_CONTINUATIONS, maxBytes / CONTINUATION_BYTES)
    if (++this.#frames > maxFrames || this.#dropped + this.#pieces.bytes + to - from > maxBytes) return false
    this.#pieces.push(bytes.subarray(from, to))
    return true
  }

  /** The first `bytes` of it are the block, in one piece; valid until it is cleared, or another one is requested. */
  whole(): Buffer {
    const pieces = this.#pieces.pieces()
    const [first] = pieces
    if (first !== undefined && pieces.length === 1) return first
    const block = blockScratch.of(this.#pieces.bytes)
    let at = 0
    for (const piece of pieces) at += piece.copy(block, at)
    return block
  }

  /** Drops the first octets of `whole()`. */
  drop(octets: number): void {
    const rest = Buffer.from(this.whole().subarray(octets, this.#pieces.bytes))
    this.#dropped += octets
    this.#pieces.clear()
    this.#pieces.push(rest)
  }

  /** Closes the block. */
  clear(): void {
    this.#pieces.clear()
    this.stream = 0
  }
}
