// Frames of HTTP/2 (RFC 9113 section 6): types, flags, error codes, settings, and writing frame headers.

export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PUSH_PROMISE = 5
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const FLAG_END_STREAM = 0x1
export const FLAG_ACK = 0x1
export const FLAG_END_HEADERS = 0x4
export const FLAG_PADDED = 0x8
export const FLAG_PRIORITY = 0x20

/** RFC 9113 section 7. */
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const INTERNAL_ERROR = 2
export const FLOW_CONTROL_ERROR = 3
export const SETTINGS_TIMEOUT = 4
export const STREAM_CLOSED = 5
export const FRAME_SIZE_ERROR = 6
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const COMPRESSION_ERROR = 9
export const ENHANCE_YOUR_CALM = 11

/** RFC 9113 section 6.5.2; ENABLE_CONNECT_PROTOCOL is from RFC 8441. */
export const HEADER_TABLE_SIZE = 1
export const ENABLE_PUSH = 2
export const MAX_CONCURRENT_STREAMS = 3
export const INITIAL_WINDOW_SIZE = 4
export const MAX_FRAME_SIZE = 5
export const MAX_HEADER_LIST_SIZE = 6
export const ENABLE_CONNECT_PROTOCOL = 8

export const FRAME_HEADER_BYTES = 9
/** Defaults until SETTINGS arrive; also the minimum of MAX_FRAME_SIZE. */
export const DEFAULT_WINDOW_BYTES = 65_535
export const DEFAULT_FRAME_BYTES = 16_384
export const LARGEST_FRAME_BYTES = 16_777_215
export const LARGEST_WINDOW_BYTES: number = 2 ** 31 - 1
export const LARGEST_STREAM_ID: number = 2 ** 31 - 1

export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

/** Writes the nine bytes of a frame header (RFC 9113 section 4.1). */
export function writeFrameHeader(
  out: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): void {
  out[at] = length >>> 16
  out[at + 1] = length >>> 8
  out[at + 2] = length
  out[at + 3] = type
  out[at + 4] = flags
  out[at + 5] = stream >>> 24
  out[at + 6] = stream >>> 16
  out[at + 7] = stream >>> 8
  out[at + 8] = stream
}

/** A 32-bit number in network order. */
export function writeUint32(out: Buffer, at: number, value: number): void {
  out[at] = value >>> 24
  out[at + 1] = value >>> 16
  out[at + 2] = value >>> 8
  out[at + 3] = value
}

export function readUint32(bytes: Buffer, at: number): number {
  return (
    (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
  )
}
