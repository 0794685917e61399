// HTTP/2 frames written by hand (RFC 9113, RFC 7541): for what no HTTP/2 library would send.

import { openRaw, type RawConnection, type RawOptions } from '../clients/raw-clients.ts'

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

export const END_STREAM = 1
export const END_HEADERS = 4
export const PADDED = 8
export const WITH_PRIORITY = 0x20
export const ACK = 1

/** Error codes (RFC 9113 section 7). */
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const INTERNAL_ERROR = 2
export const FLOW_CONTROL_ERROR = 3
export const STREAM_CLOSED = 5
export const FRAME_SIZE_ERROR = 6
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const COMPRESSION_ERROR = 9
export const ENHANCE_YOUR_CALM = 11

/** Settings (RFC 9113 section 6.5.2). */
export const HEADER_TABLE_SIZE = 1
export const MAX_CONCURRENT_STREAMS = 3
export const INITIAL_WINDOW_SIZE = 4
export const MAX_FRAME_SIZE = 5
export const MAX_HEADER_LIST_SIZE = 6

export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const FRAME_HEADER_BYTES = 9
const MAX_FRAME_BYTES = 16_384

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** A connection that has sent the preface and empty SETTINGS. */
export async function openFrames(options: RawOptions): Promise<RawConnection> {
  const connection = await openRaw({ alpn: ['h2'], ...options })
  connection.send(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0)]))
  return connection
}

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(FRAME_HEADER_BYTES)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header list as a block of literals without indexing and without Huffman code: any bytes, any order. */
export function headerBlock(list: readonly string[]): Buffer {
  const parts: Buffer[] = []
  for (let i = 0; i + 1 < list.length; i += 2) {
    parts.push(Buffer.from([0]), literal(list[i] ?? ''), literal(list[i + 1] ?? ''))
  }
  return Buffer.concat(parts)
}

/** HEADERS and as many CONTINUATIONs as the block needs. `flags` of the HEADERS frame, END_HEADERS apart. */
export function headersFrames(stream: number, block: Buffer, flags: number = END_STREAM): Buffer {
  const frames: Buffer[] = []
  for (let at = 0; at === 0 || at < block.length; at += MAX_FRAME_BYTES) {
    const last = at + MAX_FRAME_BYTES >= block.length ? END_HEADERS : 0
    const payload = block.subarray(at, at + MAX_FRAME_BYTES)
    frames.push(at === 0 ? frame(HEADERS, flags | last, stream, payload) : frame(CONTINUATION, last, stream, payload))
  }
  return Buffer.concat(frames)
}

export function data(stream: number, bytes: string | Buffer, flags: number = 0): Buffer {
  return frame(DATA, flags, stream, Buffer.from(bytes))
}

/** Pairs of setting and value. */
export function settings(...pairs: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.alloc(6 * pairs.length)
  pairs.forEach(([setting, value], i) => {
    payload.writeUInt16BE(setting, 6 * i)
    payload.writeUInt32BE(value, 6 * i + 2)
  })
  return frame(SETTINGS, 0, 0, payload)
}

/** Stream 0: of the connection. */
export function windowUpdate(stream: number, increment: number): Buffer {
  return frame(WINDOW_UPDATE, 0, stream, uint32(increment))
}

export function ping(opaque: number = 0, flags: number = 0): Buffer {
  const payload = Buffer.alloc(8)
  payload.writeUInt32BE(opaque, 4)
  return frame(PING, flags, 0, payload)
}

export function goaway(lastStream: number, code: number): Buffer {
  return frame(GOAWAY, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]))
}

/** Weight 16, not exclusive. */
export function priority(stream: number, dependsOn: number = 0): Buffer {
  return frame(PRIORITY, 0, stream, Buffer.concat([uint32(dependsOn), Buffer.from([15])]))
}

export function rstStream(stream: number, code: number): Buffer {
  return frame(RST_STREAM, 0, stream, uint32(code))
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Complete frames in what was received. */
export function readFrames(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  let at = 0
  while (at + FRAME_HEADER_BYTES <= bytes.length) {
    const length = bytes.readUIntBE(at, 3)
    const end = at + FRAME_HEADER_BYTES + length
    if (end > bytes.length) break
    frames.push({
      type: bytes[at + 3] ?? 0,
      flags: bytes[at + 4] ?? 0,
      stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
      payload: bytes.subarray(at + FRAME_HEADER_BYTES, end),
    })
    at = end
  }
  return frames
}

/** `:status` of a response head whose sender indexes nothing, or not yet. */
export function statusOf(block: Buffer): number {
  let at = 0
  while (((block[at] ?? 0) & 0xe0) === 0x20) at++ // changes of the table's size; none above 30 in these tests
  const first = block[at] ?? 0
  if (first >= 0x88 && first <= 0x8e) return INDEXED_STATUS[first - 0x88] ?? 0
  if (![0x08, 0x18, 0x48].includes(first)) throw new Error(`no :status in ${block.subarray(0, 20).toString('hex')}`)
  const length = (block[at + 1] ?? 0) & 0x7f
  const value = block.subarray(at + 2, at + 2 + length)
  return Number((block[at + 1] ?? 0) < 0x80 ? value.toString('latin1') : huffmanDigits(value))
}

/** RFC 7541 appendix A. */
const INDEXED_STATUS = [200, 204, 206, 304, 400, 404, 500]

/** RFC 7541 appendix B: three digits; 0, 1 and 2 have five bits each, the others six. */
function huffmanDigits(bytes: Buffer): string {
  let text = ''
  let bits = BigInt(`0x${bytes.toString('hex')}`)
    .toString(2)
    .padStart(8 * bytes.length, '0')
  while (text.length < 3) {
    const short = Number.parseInt(bits.slice(0, 5), 2)
    const isShort = short <= 2
    text += isShort ? short : Number.parseInt(bits.slice(0, 6), 2) - 22
    bits = bits.slice(isShort ? 5 : 6)
  }
  return text
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  return Buffer.concat([integer(bytes.length, 7), bytes])
}

/** RFC 7541 section 5.1. */
function integer(value: number, prefixBits: number): Buffer {
  const limit = 2 ** prefixBits - 1
  if (value < limit) return Buffer.from([value])
  const bytes = [limit]
  let rest = value - limit
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  bytes.push(rest)
  return Buffer.from(bytes)
}
