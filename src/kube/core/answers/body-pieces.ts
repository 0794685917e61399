// Collects a body in pieces: copied, because a chunk is valid only during its event. Small chunks share a piece: a Buffer itself takes
// about a hundred bytes, so a body sent byte by byte would take a hundred times what its sender is charged for.

/** Minimum size of every piece but the first. */
const PIECE_BYTES = 1024

export class BodyPieces {
  #pieces: Buffer[] = []
  /** Bytes used in the last piece. */
  #written = 0

  /** Copies the chunk. */
  add(chunk: Buffer): void {
    const last = this.#pieces.at(-1)
    const copied = last === undefined ? 0 : chunk.copy(last, this.#written)
    this.#written += copied
    const rest = chunk.length - copied
    if (rest === 0) return
    const piece = Buffer.allocUnsafe(last === undefined ? rest : Math.max(rest, PIECE_BYTES))
    chunk.copy(piece, 0, copied)
    this.#pieces.push(piece)
    this.#written = rest
  }

  /** Returns everything in order, and leaves it empty. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces
    const last = pieces.pop()
    if (last !== undefined) pieces.push(last.subarray(0, this.#written))
    this.clear()
    return pieces
  }

  clear(): void {
    this.#pieces = []
    this.#written = 0
  }
}
