// The PROXY protocol header that a load balancer sends before a connection: versions 1 and 2 (haproxy.org, proxy-protocol.txt). The first
// byte tells the version; whether there is a header is never guessed. Read byte by byte into a fixed-size buffer: of a header of 65,551
// bytes only the addresses are kept.

import { canonicalIp, ipText } from '../../../kit/api/validation/ip-address.ts'

export type ProxyHeader =
  /** All bytes belong to the header, and more must follow. */
  | { readonly kind: 'more' }
  /** The first `length` bytes of the chunk belong to it. `ends` undefined = use the socket's own addresses. */
  | { readonly kind: 'complete'; readonly length: number; readonly ends: DeclaredEnds | undefined }
  /** The connection must be closed. */
  | { readonly kind: 'invalid'; readonly problem: string }

/** The addresses that the sender declares for the proxied connection. Canonical. */
export interface DeclaredEnds {
  readonly sourceAddress: string
  readonly sourcePort: number
  readonly destinationAddress: string
  readonly destinationPort: number
}

/** Consumes one byte of the header. @returns undefined = more must follow; a string = invalid */
interface HeaderReader {
  next(byte: number): undefined | string | { readonly ends: DeclaredEnds | undefined }
}

const MORE: ProxyHeader = { kind: 'more' }
const VERSION_1 = 0x50 // P
const VERSION_2 = 0x0d

/** Reads one header, not a second one that a client may have sent after it. Not reusable after `complete` or `invalid`. */
export class ProxyHeaderReader {
  #reader: HeaderReader | undefined

  read(chunk: Uint8Array): ProxyHeader {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      this.#reader ??= readerOf(byte)
      if (this.#reader === undefined) return { kind: 'invalid', problem: 'no PROXY header' }
      const result = this.#reader.next(byte)
      if (typeof result === 'string') return { kind: 'invalid', problem: result }
      if (result !== undefined) return { kind: 'complete', length: at + 1, ends: result.ends }
    }
    return MORE
  }
}

function readerOf(byte: number): HeaderReader | undefined {
  if (byte === VERSION_1) return new HeaderV1()
  return byte === VERSION_2 ? new HeaderV2() : undefined
}

// Version 1: one line of text. `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`

/** Including CRLF: the maximum in the specification. */
const MAX_BYTES = 107
const PREFIX = 'PROXY '
const UNKNOWN = 'PROXY UNKNOWN'
const [CR, LF] = [0x0d, 0x0a]
const WITHOUT_ENDS = { ends: undefined }

class HeaderV1 implements HeaderReader {
  #line = ''
  #afterCr = false

  next(byte: number): undefined | string | { readonly ends: DeclaredEnds | undefined } {
    const length = this.#line.length + (this.#afterCr ? 1 : 0)
    if (this.#afterCr) return byte === LF ? readLine(this.#line) : 'line that does not end in CRLF'
    if (byte === CR) {
      this.#afterCr = true
      return length + 2 > MAX_BYTES ? 'line too long' : undefined
    }
    // No room is left for the line's end.
    if (length + 3 > MAX_BYTES) return 'line too long'
    if (length < PREFIX.length && byte !== PREFIX.charCodeAt(length)) return 'no PROXY header'
    this.#line += String.fromCharCode(byte)
    return undefined
  }
}

function readLine(line: string): string | { readonly ends: DeclaredEnds | undefined } {
  // The rest of the line must be ignored.
  if (line === UNKNOWN || line.startsWith(`${UNKNOWN} `)) return WITHOUT_ENDS
  const fields = line.split(' ')
  const [, protocol, source = '', destination = '', from = '', to = ''] = fields
  if (protocol !== 'TCP4' && protocol !== 'TCP6') return 'unknown protocol'
  if (fields.length !== 6) return 'not four addresses and ports'
  const [sourcePort, destinationPort] = [portOf(from), portOf(to)]
  if (sourcePort === undefined || destinationPort === undefined) return 'invalid port'
  const [sourceAddress, destinationAddress] = [addressOf(source, protocol), addressOf(destination, protocol)]
  if (sourceAddress === undefined || destinationAddress === undefined) return 'invalid address'
  return { ends: { sourceAddress, sourcePort, destinationAddress, destinationPort } }
}

/** Without leading zeros, as the specification requires. */
function portOf(text: string): number | undefined {
  if (!/^(0|[1-9]\d{0,4})$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65_535 ? port : undefined
}

function addressOf(text: string, protocol: 'TCP4' | 'TCP6'): string | undefined {
  if (text.includes(':') !== (protocol === 'TCP6') || text.includes('%')) return undefined
  return canonicalIp(text)
}

// Version 2: a binary head of 16 bytes, addresses, and TLVs, of which only the checksum (PP2_TYPE_CRC32C) matters here. The others (ALPN,
// authority, TLS, those of AWS ...) are skipped.
const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
const HEAD_BYTES = 16
const VERSION = 2
const [LOCAL, PROXY] = [0, 1]
/** Address sizes of TCP over IPv4 and IPv6, bytes. */
const TCP = new Map([
  [0x11, 4],
  [0x21, 16],
])
/** Sizes of ignored addresses, bytes: none, and Unix sockets. */
const WITHOUT_ADDRESS = new Map([
  [0x00, 0],
  [0x31, 216],
])
const PORT_BYTES = 2
const TLV_CRC32C = 0x03
const CRC32C_BYTES = 4

class HeaderV2 implements HeaderReader {
  /** Bytes read. */
  #at = 0
  #command = LOCAL
  #family = 0
  /** Two addresses of IPv6, and two ports. */
  readonly #addresses = new Uint8Array(36)
  /** End of the addresses, and of the header. */
  #addressesEnd = HEAD_BYTES
  #end = HEAD_BYTES
  #tlvType = 0
  #tlvHeadAt = 0
  #tlvLength = 0
  /** Bytes left of the value. */
  #tlvLeft = 0
  #crc = CRC32C_BEGIN
  /** undefined = no checksum. */
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

  /** The head is complete: determines the end of the addresses. */
  #familyProblem(): string | undefined {
    const address = TCP.get(this.#family)
    const size = address === undefined ? WITHOUT_ADDRESS.get(this.#family) : 2 * (address + PORT_BYTES)
    const fits = size !== undefined && HEAD_BYTES + size <= this.#end
    if (this.#command === LOCAL) {
      // The addresses of a LOCAL header must be ignored, whatever they are: the rest is parsed as TLVs only if it is known where those
      // begin.
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
      // The checksum covers the header with zeros in its own place.
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

// CRC-32C (Castagnoli, RFC 3309 appendix), byte by byte, so that a long header need not be buffered.

/** Reflected. */
const POLYNOMIAL = 0x82f63b78
const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1
  return rest
})

/** Initial state for `crc32cAdd`. */
export const CRC32C_BEGIN = 0xffffffff

export function crc32cAdd(state: number, byte: number): number {
  return (state >>> 8) ^ (TABLE[(state ^ byte) & 0xff] ?? 0)
}

/** As an unsigned number. */
export function crc32cEnd(state: number): number {
  return (state ^ 0xffffffff) >>> 0
}
