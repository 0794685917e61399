// Small damage to a session: to its frames, their headers and header blocks, or to its bytes.

import * as h2 from '../harness/frames/h2-frames.ts'
import { build, join } from './build-frames.ts'
import type { Random } from './random.ts'

const FRAME_HEADER_BYTES = 9
const INTERESTING = [0, 1, 4, 5, 6, 8, 9, 255, 256, 16_383, 16_384, 16_385, 65_535, 2 ** 24 - 1]
const IDS = [0, 1, 2, 3, 4, 5, 7, 9, 11, 101, 2 ** 31 - 1, 2 ** 31 + 1]
/** Beginnings of fields that decoders get wrong: index 0, numbers without end, sizes, lengths beyond the block. */
const EVIL_FIELDS = [
  '80',
  'ff',
  'ffffffffff',
  '20',
  '3fe1ff03',
  '3f',
  '7f',
  '0f',
  '00ff',
  '0085ffffffffff00',
  '4000',
  'c0',
]
const EVIL = EVIL_FIELDS.map((text) => Buffer.from(text, 'hex'))

/** Changes `frames`; `other` is a source of further ones. */
export function mutate(frames: Buffer[], random: Random, other: () => Buffer[]): void {
  for (let n = 1 + random.below(3); n > 0; n--) mutateOnce(frames, random, other)
}

function mutateOnce(frames: Buffer[], random: Random, other: () => Buffer[]): void {
  const at = random.below(frames.length)
  const frame = frames[at]
  if (frame === undefined) return
  switch (random.below(16)) {
    case 0:
    case 1:
      frames[at] = flip(frame, random)
      return
    case 2:
      frames[at] = frame.subarray(0, random.below(frame.length))
      return
    case 3:
      frames.splice(at, 0, ...new Array<Buffer>(random.oneIn(50) ? 1 + random.below(300) : 1).fill(frame))
      return
    case 4:
      if (frames.length > 1) frames.splice(at, 1)
      return
    case 5: {
      const to = random.below(frames.length)
      frames[at] = frames[to] ?? frame
      frames[to] = frame
      return
    }
    case 6:
      frames.splice(at, 0, random.pick(other()))
      return
    case 7:
      frames[at] = withHeader(frame, (copy) => copy.writeUIntBE(random.pick(INTERESTING), 0, 3))
      return
    case 8:
      frames[at] = withHeader(frame, (copy) => copy.writeUInt8(random.below(11), 3))
      return
    case 9:
      frames[at] = withHeader(frame, (copy) => copy.writeUInt8(random.below(256), 4))
      return
    case 10:
    case 11:
      frames[at] = withHeader(frame, (copy) => copy.writeUInt32BE(random.pick(IDS), 5))
      return
    case 12:
    case 13:
      frames[at] = withEvilBlock(frame, random)
      return
    case 14:
      frames.splice(at, 0, build(random.below(10), random.below(256), random.pick(IDS), noise(random)))
      return
    default:
      frames[at] = resize(frame, random)
  }
}

function flip(frame: Buffer, random: Random): Buffer {
  if (frame.length === 0) return frame
  const copy = copyOf(frame)
  for (let n = 1 + random.below(3); n > 0; n--) {
    const at = random.below(Math.min(copy.length, 64))
    copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8))
  }
  return copy
}

function withHeader(frame: Buffer, change: (copy: Buffer) => void): Buffer {
  if (frame.length < FRAME_HEADER_BYTES) return frame
  const copy = copyOf(frame)
  change(copy)
  return copy
}

/** Something that breaks decoders, in the middle of a header block; the length of the frame stays right. */
function withEvilBlock(frame: Buffer, random: Random): Buffer {
  if (frame.length < FRAME_HEADER_BYTES || frame[3] !== h2.HEADERS) return flip(frame, random)
  const cut = FRAME_HEADER_BYTES + random.below(frame.length - FRAME_HEADER_BYTES + 1)
  const rest = random.oneIn(3) ? frame.subarray(frame.length) : frame.subarray(cut)
  return relength(join([frame.subarray(0, cut), random.pick(EVIL), rest]))
}

/** Bytes added or cut off at the end; the length of the frame stays right. */
function resize(frame: Buffer, random: Random): Buffer {
  if (frame.length < FRAME_HEADER_BYTES) return frame
  if (random.oneIn(2)) return relength(join([frame, noise(random)]))
  return relength(copyOf(frame.subarray(0, FRAME_HEADER_BYTES + random.below(frame.length - FRAME_HEADER_BYTES + 1))))
}

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafe(bytes.length)
  copy.set(bytes)
  return copy
}

function relength(frame: Buffer): Buffer {
  frame.writeUIntBE(frame.length - FRAME_HEADER_BYTES, 0, 3)
  return frame
}

function noise(random: Random): Buffer {
  const bytes = Buffer.allocUnsafe(random.below(24))
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.oneIn(3) ? 0 : random.below(256)
  return bytes
}
