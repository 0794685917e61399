// A FIFO of bytes in pooled memory: a peer that sends byte by byte costs little more
// than the bytes, and the chunks in which they arrived are not kept alive.

import { releaseShortMemory, releaseSlab, SHORT_BYTES, SLAB_BYTES, takeShortMemory, takeSlab } from './slabs.ts'

/** Takes bytes by copying them. */
export interface ByteSink {
  append(bytes: Buffer): void
}

export class ChunkQueue {
  /** Number of queued bytes. */
  bytes: number = 0
  /** The first is read from #from on, the last is written up to #to; those in between are full. */
  readonly #slabs: Buffer[] = []
  #from = 0
  #to = 0

  /** Allocated memory, in whole pieces: a few bytes more than fit into the first take a large one. */
  get memory(): number {
    const first = this.#slabs[0]
    return first === undefined ? 0 : first.length + (this.#slabs.length - 1) * SLAB_BYTES
  }

  /** Memory that this many more bytes would take. */
  growth(length: number): number {
    const last = this.#slabs[this.#slabs.length - 1]
    if (last === undefined && length > 0 && length <= SHORT_BYTES) return SHORT_BYTES
    const room = last === undefined ? 0 : last.length - this.#to
    return length <= room ? 0 : Math.ceil((length - room) / SLAB_BYTES) * SLAB_BYTES
  }

  push(chunk: Buffer): void {
    const { length } = chunk
    for (let at = 0; at < length; ) {
      let last = this.#slabs[this.#slabs.length - 1]
      if (last === undefined || this.#to === last.length) {
        last = last === undefined && length <= SHORT_BYTES ? takeShortMemory() : takeSlab()
        this.#slabs.push(last)
        this.#to = 0
      }
      const size = Math.min(length - at, last.length - this.#to)
      chunk.copy(last, this.#to, at, at + size)
      this.#to += size
      at += size
    }
    this.bytes += length
  }

  /** Passes the next `size` bytes, at most all, to `sink`, which copies them. */
  moveTo(sink: ByteSink, size: number): void {
    const slabs = this.#slabs
    let left = Math.min(size, this.bytes)
    this.bytes -= left
    while (left > 0) {
      const first = slabs[0]
      if (first === undefined) return
      const end = slabs.length === 1 ? this.#to : first.length
      const part = Math.min(left, end - this.#from)
      sink.append(first.subarray(this.#from, this.#from + part))
      this.#from += part
      left -= part
      if (this.#from < end) return
      release(first)
      slabs.shift()
      this.#from = 0
    }
  }

  /** All queued bytes, which stay queued; valid until another method is called. */
  pieces(): readonly Buffer[] {
    const last = this.#slabs.length - 1
    return this.#slabs.map((slab, i) => slab.subarray(i === 0 ? this.#from : 0, i === last ? this.#to : slab.length))
  }

  /** Empties the queue. */
  clear(): void {
    for (const slab of this.#slabs) release(slab)
    this.#slabs.length = 0
    this.#from = 0
    this.bytes = 0
  }
}

function release(piece: Buffer): void {
  if (piece.length === SHORT_BYTES) releaseShortMemory(piece)
  else releaseSlab(piece)
}
