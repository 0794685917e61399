// Joins and cuts what is sent into pieces of a size that streams like: a client that takes nothing has a few of them waiting, whatever the size
// of an object.

/** One write's worth; a piece has less than twice as much. */
export const PIECE_BYTES: number = 32 * 1024

export class Pieces {
  #rest: Buffer | undefined

  /** What was taken has not all been returned. */
  get hasRest(): boolean {
    return this.#rest !== undefined
  }

  /** @param part the next part; undefined = there is none @returns undefined = there was none */
  next(part: () => Buffer | undefined): Buffer | undefined {
    const first = this.#rest ?? part()
    this.#rest = undefined
    if (first === undefined) return undefined
    if (first.length > PIECE_BYTES) {
      this.#rest = first.subarray(PIECE_BYTES)
      return first.subarray(0, PIECE_BYTES)
    }
    const parts = [first]
    let bytes = first.length
    while (bytes < PIECE_BYTES) {
      const more = part()
      if (more === undefined) break
      if (more.length > PIECE_BYTES) {
        this.#rest = more
        break
      }
      parts.push(more)
      bytes += more.length
    }
    return parts.length === 1 ? first : Buffer.concat(parts, bytes)
  }
}
