// HTTP/2 frames written by hand (RFC 9113, RFC 7541): for what no HTTP/2 library would send.

import { openRaw, type RawConnection, type RawOptions } from './raw-clients.ts'

export const DATA = 0
export const HEADERS = 1
export const RST_STREAM = 3
export const SETTINGS = 4
export const PING = 6
export const GOAWAY = 7
export const CONTINUATION = 9

export const END_STREAM = 1
export const END_HEADERS = 4
export const ACK = 1

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
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

export function rstStream(stream: number, code: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(code)
  return frame(RST_STREAM, 0, stream, payload)
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
