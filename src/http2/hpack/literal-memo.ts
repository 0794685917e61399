// A literal that is repeated octet for octet need not be decoded again. Many HTTP/2 libraries never put `:path` and
// `authorization` into the table, so that the path of a poll or a bearer token is sent in full with each request.

/** Longer literals are not cached. A service account token has about 1,200 characters. */
const MAX_OCTETS = 2048

/** The last string literal of one field, as on the wire and as decoded. */
export class LiteralMemo {
  value = ''
  flags = 0
  #octets: Uint8Array = new Uint8Array(0)
  #length = 0

  /**
   * The end of the cached literal if it is at `at` again, else -1. Its length is part of it (RFC 7541 section
   * 5.2), so equal octets are the whole literal.
   */
  match(block: Uint8Array, at: number, end: number): number {
    const length = this.#length
    if (length === 0 || length > end - at) return -1
    const octets = this.#octets
    for (let i = 0; i < length; i++) if (block[at + i] !== octets[i]) return -1
    return at + length
  }

  /** Caches the literal from `from` to `to` and its value. */
  keep(block: Uint8Array, from: number, to: number, value: string, flags: number): void {
    const length = to - from
    this.value = value
    this.flags = flags
    this.#length = 0
    if (length > MAX_OCTETS) {
      this.value = ''
      return
    }
    if (length > this.#octets.length) this.#octets = new Uint8Array(Math.max(64, 2 ** Math.ceil(Math.log2(length))))
    const octets = this.#octets
    for (let i = 0; i < length; i++) octets[i] = block[from + i] as number
    this.#length = length
  }
}
