// What a power cut leaves of SQLite's log (sqlite.org/fileformat2.html#the_write_ahead_log): everything that was synced, and of what
// came after it anything at all. A commit is synced before it is acknowledged, so only what follows the last acknowledged commit is torn.

import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import type { Random } from '../fuzz/random.ts'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const BIG_ENDIAN_SUMS = 0x377f0683

interface Frame {
  readonly offset: number
  readonly page: number
  readonly commits: boolean
}

export interface WalFile {
  readonly bytes: Buffer
  readonly pageSize: number
  /** Those that SQLite reads again: right salts and checksums, up to the last commit. */
  readonly frames: readonly Frame[]
}

export function readWal(file: string): WalFile {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  if (bytes.length < HEADER_BYTES) return { bytes, pageSize: 4096, frames: [] }
  const pageSize = bytes.readUInt32BE(8)
  const bigEndian = bytes.readUInt32BE(0) === BIG_ENDIAN_SUMS
  let sums = checksum(bytes, 0, 24, bigEndian, [0, 0])
  if (sums[0] !== bytes.readUInt32BE(24) || sums[1] !== bytes.readUInt32BE(28)) return { bytes, pageSize, frames: [] }
  const frames: Frame[] = []
  let committed = 0
  const frameBytes = FRAME_HEADER_BYTES + pageSize
  for (let offset = HEADER_BYTES; offset + frameBytes <= bytes.length; offset += frameBytes) {
    if (bytes.compare(bytes, 16, 24, offset + 8, offset + 16) !== 0) break
    sums = checksum(bytes, offset, 8, bigEndian, sums)
    sums = checksum(bytes, offset + FRAME_HEADER_BYTES, pageSize, bigEndian, sums)
    if (sums[0] !== bytes.readUInt32BE(offset + 16) || sums[1] !== bytes.readUInt32BE(offset + 20)) break
    const commits = bytes.readUInt32BE(offset + 4) !== 0
    frames.push({ offset, page: bytes.readUInt32BE(offset), commits })
    if (commits) committed = frames.length
  }
  return { bytes, pageSize, frames: frames.slice(0, committed) }
}

/** Where the log begins that holds none of the last `transactions` commits. */
export function endWithout({ frames, pageSize }: WalFile, transactions: number): number {
  let left = transactions
  for (let i = frames.length - 1; i >= 0; i--) {
    const frame = frames[i]
    if (frame?.commits !== true) continue
    if (left === 0) return frame.offset + FRAME_HEADER_BYTES + pageSize
    left -= 1
  }
  return HEADER_BYTES
}

const BEHIND = ['longer', 'old frame'] as const
const WITHIN = ['cut', 'noise', 'zeros', 'longer', 'last page', 'old frame', 'everything'] as const

/** Makes of the log after an offset what a power cut may make of it. Returns what was done. */
export function tear(file: string, wal: WalFile, after: number, random: Random): string {
  const { bytes, pageSize } = wal
  const start = Math.min(after, bytes.length)
  const length = Math.max(0, bytes.length - start)
  const from = start + (length === 0 ? 0 : random.below(length))
  const end = Math.max(from, bytes.length)
  const kind = random.pick(length === 0 ? BEHIND : WITHIN)
  let torn = bytes
  switch (kind) {
    case 'cut':
      truncateSync(file, from)
      return `cut at ${from}`
    case 'noise':
      torn = replaced(bytes, from, noise(random, Math.min(end - from, 1 + random.below(3 * pageSize))))
      break
    case 'zeros':
      torn = replaced(bytes, from, Buffer.alloc(end - from))
      break
    case 'longer':
      torn = Buffer.concat([bytes, noise(random, 1 + random.below(2 * pageSize))])
      break
    case 'last page': {
      // Half of it is old: the last sectors were not written.
      const sectors = Math.max(from, end - 512 * (1 + random.below(pageSize / 512)))
      torn = replaced(bytes, sectors, noise(random, end - sectors))
      break
    }
    case 'old frame': {
      const old = wal.frames[0]
      if (old === undefined) return 'no old frame'
      torn = replaced(bytes, start, bytes.subarray(old.offset, old.offset + FRAME_HEADER_BYTES + pageSize))
      break
    }
    case 'everything':
      torn = replaced(bytes, start, noise(random, length))
      break
  }
  writeFileSync(file, torn)
  return `${kind} from ${from} of ${bytes.length}`
}

/**
 * A checkpoint that was cut off: pages of the database that are in the log, too, hold anything. Not the first one, whose beginning
 * SQLite reads from the file and which no write changes.
 */
export function tearCheckpoint(file: string, wal: WalFile, upTo: number, random: Random): string {
  const database = readFileSync(file)
  const pages = wal.frames.filter(({ offset, page }) => offset < upTo && page !== 1).map(({ page }) => page)
  const torn = pages.filter((page) => page * wal.pageSize <= database.length && random.oneIn(3))
  for (const page of torn) noise(random, wal.pageSize).copy(database, (page - 1) * wal.pageSize)
  if (torn.length > 0) writeFileSync(file, database)
  return `${torn.length} pages of a checkpoint torn`
}

function replaced(bytes: Buffer, at: number, part: Buffer): Buffer {
  const end = at + part.length
  return Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(Math.min(end, bytes.length))])
}

function noise(random: Random, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  for (let i = 0; i < length; i++) bytes[i] = random.below(256)
  return bytes
}

function checksum(
  bytes: Buffer,
  at: number,
  length: number,
  big: boolean,
  [a, b]: readonly [number, number],
): [number, number] {
  let s0 = a
  let s1 = b
  for (let i = at; i < at + length; i += 8) {
    s0 = (s0 + (big ? bytes.readUInt32BE(i) : bytes.readUInt32LE(i)) + s1) >>> 0
    s1 = (s1 + (big ? bytes.readUInt32BE(i + 4) : bytes.readUInt32LE(i + 4)) + s0) >>> 0
  }
  return [s0, s1]
}
