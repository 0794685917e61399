// Frames for the fuzzer: as those of the test harness, but each in one cheap piece of memory, since ten million inputs need
// a hundred million of them.

import { PING, SETTINGS, WINDOW_UPDATE } from '../harness/frames/h2-frames.ts'

const FRAME_HEADER_BYTES = 9
const EMPTY = Buffer.alloc(0)

/** The payload is `first`, then `second`, then `padding` zeros. */
export function build(
  type: number,
  flags: number,
  stream: number,
  first: Buffer = EMPTY,
  second: Buffer = EMPTY,
  padding = 0,
): Buffer {
  const length = first.length + second.length + padding
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + length)
  bytes[0] = length >>> 16
  bytes[1] = length >>> 8
  bytes[2] = length
  bytes[3] = type
  bytes[4] = flags
  putUint32(bytes, 5, stream)
  bytes.set(first, FRAME_HEADER_BYTES)
  if (second.length > 0) bytes.set(second, FRAME_HEADER_BYTES + first.length)
  if (padding > 0) bytes.fill(0, FRAME_HEADER_BYTES + first.length + second.length)
  return bytes
}

/** One after the other, in memory of its own. */
export function join(parts: readonly Buffer[]): Buffer {
  let length = 0
  for (let i = 0; i < parts.length; i++) length += (parts[i] as Buffer).length
  return joinInto(Buffer.allocUnsafe(length), parts)
}

/** One after the other at the beginning of `out`, which is large enough; what of it was filled. */
export function joinInto(out: Buffer, parts: readonly Buffer[]): Buffer {
  let at = 0
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as Buffer
    out.set(part, at)
    at += part.length
  }
  return at === out.length ? out : out.subarray(0, at)
}

export function buildWindowUpdate(stream: number, increment: number): Buffer {
  const bytes = build(WINDOW_UPDATE, 0, stream, FOUR)
  putUint32(bytes, FRAME_HEADER_BYTES, increment)
  return bytes
}

export function buildPing(opaque: number, flags: number): Buffer {
  const bytes = build(PING, flags, 0, FOUR, FOUR)
  putUint32(bytes, FRAME_HEADER_BYTES + 4, opaque)
  return bytes
}

/** `pairs`: setting, value, setting, value, ... */
export function buildSettings(pairs: readonly number[]): Buffer {
  const bytes = build(SETTINGS, 0, 0, EMPTY, EMPTY, pairs.length * 3)
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    bytes[FRAME_HEADER_BYTES + i * 3 + 1] = pairs[i] as number
    putUint32(bytes, FRAME_HEADER_BYTES + i * 3 + 2, pairs[i + 1] as number)
  }
  return bytes
}

/** One or two numbers of 32 bits as the payload. */
export function buildNumbers(type: number, stream: number, first: number, second: number | undefined): Buffer {
  const bytes = build(type, 0, stream, FOUR, second === undefined ? EMPTY : FOUR)
  putUint32(bytes, FRAME_HEADER_BYTES, first)
  if (second !== undefined) putUint32(bytes, FRAME_HEADER_BYTES + 4, second)
  return bytes
}

const FOUR = Buffer.alloc(4)

function putUint32(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}
