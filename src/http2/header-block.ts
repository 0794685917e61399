// A header block in several frames: HEADERS and CONTINUATION (RFC 9113 section 6.10).

/** Frames that any block may have. Where large blocks are allowed, one more for each of these octets. */
const MAX_CONTINUATIONS = 128
const CONTINUATION_BYTES = 8192

export class HeaderBlock {
  /** Its stream; 0 = no block is open. */
  stream = 0
  /** Whether its HEADERS frame has END_STREAM. */
  end = false
  sinceMs = 0
  #parts: Buffer[] = []
  #bytes = 0
  #frames = 0

  begin(stream: number, end: boolean, bytes: Buffer, from: number, to: number, nowMs: number): void {
    this.stream = stream
    this.end = end
    this.sinceMs = nowMs
    this.#frames = 0
    this.#bytes = to - from
    // Copies: a small part of a chunk would keep the whole chunk alive.
    this.#parts = [Buffer.from(bytes.subarray(from, to))]
  }

  /** False when there are too many frames, or more bytes than `maxBytes`. */
  add(bytes: Buffer, from: number, to: number, maxBytes: number): boolean {
    this.#bytes += to - from
    const maxFrames = Math.max(MAX_CONTINUATIONS, maxBytes / CONTINUATION_BYTES)
    if (++this.#frames > maxFrames || this.#bytes > maxBytes) return false
    this.#parts.push(Buffer.from(bytes.subarray(from, to)))
    return true
  }

  /** The whole block; none is open then. */
  take(): Buffer {
    const block = Buffer.concat(this.#parts)
    this.clear()
    return block
  }

  clear(): void {
    this.#parts = []
    this.stream = 0
  }
}
