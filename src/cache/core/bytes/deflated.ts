// A gzip file (RFC 1951, RFC 1952) whose parts are compressed each for itself: the same part can stand in another file, too.

import { Buffer } from 'node:buffer'

/** A part: whole blocks of deflate that need nothing of those in front of them, end at an octet, and of which none is the last of a file. */
export interface Deflated {
  readonly bytes: Buffer
  /** CRC-32 of the plain bytes, and how many they are. */
  readonly crc: number
  readonly length: number
}

/** Deflate, no flags, no time, the fastest compression, an unknown system. */
export const GZIP_HEAD: Buffer = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255])
/** An empty block, the last one, in front of checksum and length. */
const LAST_BLOCK = [3, 0]
const TAIL_BYTES = 10
const LENGTH_MODULO = 2 ** 32
const MOST_STORED = 0xffff
const STORED_HEAD_BYTES = 5
/** That of CRC-32, with its bits in reverse order. */
const POLYNOMIAL = 0xedb88320
const ONE = 0x80000000

/** @param length of all parts together, as `crc` is their checksum */
export function gzipTail(crc: number, length: number): Buffer {
  const tail = Buffer.alloc(TAIL_BYTES)
  tail.set(LAST_BLOCK)
  tail.writeUInt32LE(crc, LAST_BLOCK.length)
  tail.writeUInt32LE(length % LENGTH_MODULO, LAST_BLOCK.length + 4)
  return tail
}

/** As they are, in blocks: what is too short to be worth a thread's work. */
export function storedBlocks(plain: Buffer): Buffer {
  const blocks: Buffer[] = []
  for (let at = 0; at < plain.length; at += MOST_STORED) {
    const part = plain.subarray(at, at + MOST_STORED)
    const head = Buffer.alloc(STORED_HEAD_BYTES)
    head.writeUInt16LE(part.length, 1)
    head.writeUInt16LE(~part.length & MOST_STORED, 3)
    blocks.push(head, part)
  }
  return Buffer.concat(blocks)
}

/** The CRC-32 of two parts together, by those of each: zlib's crc32_combine. */
export function joinedCrc(first: number, second: number, secondBytes: number): number {
  return (product(powerOfBytes(secondBytes), first) ^ second) >>> 0
}

/** x to the power of 2 to the power of the index, modulo the polynomial. */
const POWERS = powers()

function powers(): readonly number[] {
  const found = [0x40000000]
  while (found.length < 32) {
    const last = found.at(-1) ?? 0
    found.push(product(last, last))
  }
  return found
}

/** x to the power of as many bits as so many bytes have: their order is that of x, so the powers repeat after 32. */
function powerOfBytes(bytes: number): number {
  let power = ONE
  for (let rest = bytes, at = 3; rest > 0; rest = Math.floor(rest / 2), at = (at + 1) % POWERS.length)
    if (rest % 2 === 1) power = product(POWERS[at] ?? 0, power)
  return power
}

/** The product of two polynomials modulo that of CRC-32. @param a not 0 */
function product(a: number, b: number): number {
  let sum = 0
  let shifted = b
  for (let bit = ONE; ; bit >>>= 1) {
    if ((a & bit) !== 0) {
      sum ^= shifted
      if ((a & (bit - 1)) === 0) return sum >>> 0
    }
    shifted = (shifted & 1) === 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1
  }
}
