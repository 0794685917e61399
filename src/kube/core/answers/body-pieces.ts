// A body that is collected, in pieces: copied, because a chunk is valid during its event only. Chunks of a few bytes share a piece: a Buffer itself takes
// about a hundred, so a body that comes byte by byte would take a hundred times what its sender is charged for.

/** Least size of a piece behind the first. */
const PIECE_BYTES = 1024

export class BodyPieces {
  #pieces: Buffer[] = []
  /** Bytes of the last piece that are written. */
  #written = 0

  /** Copies it. */
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

  /** All of it, in order; then it is empty. */
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
