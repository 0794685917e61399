// Version 2: a binary head of 16 bytes, addresses, and TLVs, of which only the checksum (PP2_TYPE_CRC32C) says anything here. The others
// (ALPN, authority, TLS, those of AWS ...) are skipped as they come.

import { ipText } from '../../api/validation/ip-address.ts'
import { CRC32C_BEGIN, crc32cAdd, crc32cEnd } from './crc32c.ts'
import type { DeclaredEnds, HeaderReader } from './header-reader.ts'

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
const HEAD_BYTES = 16
const VERSION = 2
const [LOCAL, PROXY] = [0, 1]
/** Bytes of an address, in TCP over IPv4 and IPv6. */
const TCP = new Map([
  [0x11, 4],
  [0x21, 16],
])
/** Bytes of the addresses that are not told here: none at all, and of a Unix socket. */
const WITHOUT_ADDRESS = new Map([
  [0x00, 0],
  [0x31, 216],
])
const PORT_BYTES = 2
const TLV_CRC32C = 0x03
const CRC32C_BYTES = 4

export class HeaderV2 implements HeaderReader {
  /** Bytes read. */
  #at = 0
  #command = LOCAL
  #family = 0
  /** Two addresses of IPv6, and two ports. */
  readonly #addresses = new Uint8Array(36)
  /** Where addresses, and the header, end. */
  #addressesEnd = HEAD_BYTES
  #end = HEAD_BYTES
  #tlvType = 0
  #tlvHeadAt = 0
  #tlvLength = 0
  /** Bytes of the value that are still to come. */
  #tlvLeft = 0
  #crc = CRC32C_BEGIN
  /** undefined = there is none. */
  #declaredCrc: number | undefined

  next(byte: number): undefined | string | { readonly ends: DeclaredEnds | undefined } {
    const at = this.#at++
    const problem = at < HEAD_BYTES ? this.#head(at, byte) : this.#body(at, byte)
    if (problem !== undefined) return problem
    return at >= HEAD_BYTES - 1 && at + 1 === this.#end ? this.#complete() : undefined
  }

  #head(at: number, byte: number): string | undefined {
    this.#crc = crc32cAdd(this.#crc, byte)
    if (at < SIGNATURE.length) return byte === SIGNATURE[at] ? undefined : 'no PROXY header'
    if (at === 12) {
      this.#command = byte & 0x0f
      if (byte >> 4 !== VERSION) return 'unknown version'
      return this.#command === LOCAL || this.#command === PROXY ? undefined : 'unknown command'
    }
    if (at === 13) this.#family = byte
    else if (at === 14) this.#end += byte << 8
    else {
      this.#end += byte
      return this.#familyProblem()
    }
    return undefined
  }

  /** The head is complete: where addresses end. */
  #familyProblem(): string | undefined {
    const address = TCP.get(this.#family)
    const size = address === undefined ? WITHOUT_ADDRESS.get(this.#family) : 2 * (address + PORT_BYTES)
    const fits = size !== undefined && HEAD_BYTES + size <= this.#end
    if (this.#command === LOCAL) {
      // Its addresses are to be ignored, whatever they are: what follows is read as TLVs only when that is where they begin.
      this.#addressesEnd = fits ? HEAD_BYTES + size : this.#end
      return undefined
    }
    if (size === undefined) return 'unknown address family'
    if (!fits) return 'too short for its addresses'
    this.#addressesEnd = HEAD_BYTES + size
    return undefined
  }

  #body(at: number, byte: number): string | undefined {
    if (at < this.#addressesEnd) {
      this.#crc = crc32cAdd(this.#crc, byte)
      const index = at - HEAD_BYTES
      if (index < this.#addresses.length) this.#addresses[index] = byte
      return undefined
    }
    if (this.#tlvLeft > 0) {
      this.#tlvLeft--
      // The checksum is of the header with zeros in its place.
      const isCrc = this.#tlvType === TLV_CRC32C
      this.#crc = crc32cAdd(this.#crc, isCrc ? 0 : byte)
      if (isCrc) this.#declaredCrc = (((this.#declaredCrc ?? 0) << 8) | byte) >>> 0
      return undefined
    }
    this.#crc = crc32cAdd(this.#crc, byte)
    return this.#tlvHead(at, byte)
  }

  #tlvHead(at: number, byte: number): string | undefined {
    switch (this.#tlvHeadAt++) {
      case 0:
        this.#tlvType = byte
        return undefined
      case 1:
        this.#tlvLength = byte << 8
        return undefined
      default:
        this.#tlvHeadAt = 0
        return this.#tlvBegins(at, this.#tlvLength + byte)
    }
  }

  #tlvBegins(at: number, length: number): string | undefined {
    if (at + 1 + length > this.#end) return 'TLV beyond the end'
    if (this.#tlvType === TLV_CRC32C) {
      if (length !== CRC32C_BYTES || this.#declaredCrc !== undefined) return 'malformed checksum'
      this.#declaredCrc = 0
    }
    this.#tlvLeft = length
    return undefined
  }

  #complete(): string | { readonly ends: DeclaredEnds | undefined } {
    if (this.#tlvHeadAt > 0) return 'TLV beyond the end'
    if (this.#declaredCrc !== undefined && crc32cEnd(this.#crc) !== this.#declaredCrc) return 'wrong checksum'
    const size = TCP.get(this.#family)
    if (this.#command === LOCAL || size === undefined) return { ends: undefined }
    const ports = 2 * size
    return {
      ends: {
        sourceAddress: ipText(this.#addresses.subarray(0, size)),
        destinationAddress: ipText(this.#addresses.subarray(size, ports)),
        sourcePort: this.#port(ports),
        destinationPort: this.#port(ports + PORT_BYTES),
      },
    }
  }

  #port(at: number): number {
    return ((this.#addresses[at] ?? 0) << 8) | (this.#addresses[at + 1] ?? 0)
  }
}
