// Detects whether the first bytes of a connection are a complete ClientHello (RFC 8446 sections 4.1.2 and 5.1): handshakes start only then,
// so that a client can't hold one open by sending it slowly.

/** More than any client sends: about 2 KiB with post-quantum key shares. Includes record headers. */
export const MAX_CLIENT_HELLO_BYTES: number = 16 * 1024

/** 'invalid': these are not the first bytes of TLS. 'too-large': more than MAX_CLIENT_HELLO_BYTES. */
export type ClientHello = 'incomplete' | 'complete' | 'invalid' | 'too-large'

const RECORD_HEADER = 5
const MESSAGE_HEADER = 4
const RECORD_HANDSHAKE = 22
const MAJOR_VERSION = 3
const TYPE_CLIENT_HELLO = 1

export class ClientHelloReader {
  /** Octets received so far. */
  #bytes = 0
  /** Octets of the current record's header received, and the length they state so far. */
  #inHeader = 0
  #recordLength = 0
  /** Octets left of the current record, after its header. */
  #recordLeft = 0
  /** Octets of the message, including its own header: received, and in total once known. */
  #inMessage = 0
  #messageLength = MESSAGE_HEADER
  #result: ClientHello = 'incomplete'

  /** Consumes the next bytes; linear in the input, however it is split. */
  read(chunk: Uint8Array): ClientHello {
    for (let at = 0; at < chunk.length && this.#result === 'incomplete'; ) {
      const skipped = this.#skip(chunk.length - at)
      if (skipped > 0) at += skipped
      else this.#result = this.#next(chunk[at++] ?? 0)
    }
    if (this.#result === 'incomplete' && this.#isTooLarge()) this.#result = 'too-large'
    return this.#result
  }

  /** Skips octets that do not affect the length. */
  #skip(most: number): number {
    if (this.#inMessage < MESSAGE_HEADER) return 0
    // All but the last octet of a record, which may complete the message.
    const skipped = Math.min(most, this.#recordLeft - 1)
    if (skipped <= 0) return 0
    this.#bytes += skipped
    this.#inMessage += skipped
    this.#recordLeft -= skipped
    return skipped
  }

  #next(octet: number): ClientHello {
    this.#bytes++
    if (this.#recordLeft === 0) return this.#header(octet)
    this.#recordLeft--
    if (this.#inMessage === 0 && octet !== TYPE_CLIENT_HELLO) return 'invalid'
    // Three octets of length follow the type.
    if (this.#inMessage > 0 && this.#inMessage < MESSAGE_HEADER)
      this.#messageLength += octet << (8 * (MESSAGE_HEADER - 1 - this.#inMessage))
    this.#inMessage++
    // OpenSSL processes a record only once it is complete.
    const whole = this.#inMessage >= Math.max(MESSAGE_HEADER, this.#messageLength) && this.#recordLeft === 0
    return whole ? 'complete' : 'incomplete'
  }

  #header(octet: number): ClientHello {
    if (this.#inHeader === 0 && octet !== RECORD_HANDSHAKE) return 'invalid'
    if (this.#inHeader === 1 && octet !== MAJOR_VERSION) return 'invalid'
    if (this.#inHeader >= 3) this.#recordLength = this.#recordLength * 256 + octet
    this.#inHeader++
    if (this.#inHeader < RECORD_HEADER) return 'incomplete'
    const length = this.#recordLength
    this.#inHeader = 0
    this.#recordLength = 0
    this.#recordLeft = length
    // RFC 8446 section 5.1: no empty fragments of a handshake message.
    return length === 0 ? 'invalid' : 'incomplete'
  }

  #isTooLarge(): boolean {
    const announced = this.#messageLength - this.#inMessage
    return this.#bytes + Math.max(announced, this.#recordLeft, 0) > MAX_CLIENT_HELLO_BYTES
  }
}
