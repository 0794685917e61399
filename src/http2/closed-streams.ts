// The most recently closed streams of a connection: frames still under way for them are not an error (RFC 9113 section 5.1, closed).

const REMEMBERED = 128

export class ClosedStreams {
  /** A ring; negative: reset by us. */
  readonly #ids: Int32Array = new Int32Array(REMEMBERED)
  #at = 0
  #forgottenTo = 0

  add(id: number, resetByUs: boolean): void {
    const forgotten = Math.abs(this.#ids[this.#at] ?? 0)
    if (forgotten > this.#forgottenTo) this.#forgottenTo = forgotten
    this.#ids[this.#at] = resetByUs ? -id : id
    this.#at = (this.#at + 1) % REMEMBERED
  }

  /** The peer may not know about it yet. */
  wasResetByUs(id: number): boolean {
    return this.#ids.includes(-id)
  }

  /** By the peer's END_STREAM or RST_STREAM, so it knows. */
  wasEndedByPeer(id: number): boolean {
    return this.#ids.includes(id)
  }

  /** It may have been open, but long ago. */
  isForgotten(id: number): boolean {
    return id <= this.#forgottenTo
  }
}
