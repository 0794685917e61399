// Valid HTTP/2 sessions of few frames: what the mutations start from. Each frame is a Buffer of its own.

import * as h2 from '../harness/frames/h2-frames.ts'
import { build, buildNumbers, buildPing, buildSettings, buildWindowUpdate, join } from './build-frames.ts'
import type { Random } from './random.ts'

/** Streams that the client under test opens at once; the answers of a session are for these. */
export const CLIENT_STREAMS: readonly number[] = [1, 3, 5]

const literal = (name: string, value: string): Buffer => h2.headerBlock([name, value])
/** The same, entering the table (RFC 7541 section 6.2.1). */
const indexed = (name: string, value: string): Buffer => {
  const field = Buffer.from(literal(name, value))
  field[0] = 0x40
  return field
}
const hex = (text: string): Buffer => Buffer.from(text, 'hex')

// RFC 7541 appendix A: method GET/POST, path, scheme, authority, status 200.
const GET = hex('82')
const POST = hex('83')
const HEAD = literal(':method', 'HEAD')
const REQUEST_REST = [hex('8487'), hex('8786'), Buffer.concat([hex('87'), literal(':path', '/api/v1/pods?watch=1')])]
const AUTHORITIES = [
  literal(':authority', 'prod.example.com'),
  indexed(':authority', 'prod.example.com'),
  // appendix C.4.1: Huffman-coded www.example.com
  hex('418cf1e3c2e5f23a6ba0ab90f4ff'),
  Buffer.alloc(0),
]
const STATUSES = [hex('88'), hex('8c'), hex('8e'), literal(':status', '429'), hex('4882640e')]
const BODYLESS = [hex('89'), hex('8b')]
const INTERIM = [literal(':status', '103'), literal(':status', '100')]
const FIELDS = [
  literal('accept', 'application/json'),
  indexed('user-agent', 'kubectl/v1.36.3 (linux/amd64) kubernetes/abcdef0'),
  indexed('x-a', 'b'),
  literal('authorization', 'Bearer abc.def.ghi'),
  literal('x-empty', ''),
  literal('x-long', 'y'.repeat(300)),
  // appendix C.4.2, C.4.3, C.6.1: Huffman-coded cache-control, custom-key and cache-control, all entering the table
  hex('5886a8eb10649cbf'),
  hex('408825a849e95ba97d7f8925a849e95bb8e8b4bf'),
  hex('5885aec3771a4b'),
  // Entries of the table that may exist by now, changes of its size apart.
  hex('be'),
  hex('bf'),
  hex('10077072697661746503736563'),
]
const TRAILERS = [literal('x-sum', '7'), indexed('grpc-status', '0')]

/** Few large ones: they cost time and find little. */
const SIZES = [0, 1, 2, 9, 9, 100, 100, 300]
const LARGE = [1_000, 5_000, 16_384, 40_000]
const FILL = Buffer.alloc(16_384, 'd')
const ACK = build(h2.SETTINGS, h2.ACK, 0)
const PREFACE = Buffer.from(h2.PREFACE, 'latin1')
const PRIORITY_FIELDS = Buffer.from([0, 0, 0, 0, 15])

const LAST_STREAMS = [0, 1, 3, 5, 2 ** 31 - 1]
/** What a client sends to a server, the preface first. */
export function clientSession(random: Random): Buffer[] {
  const frames = [PREFACE, settings(random)]
  if (!random.oneIn(8)) frames.push(ACK)
  const streams = 1 + random.below(4)
  let id = 1
  for (let i = 0; i < streams; i++) {
    request(frames, random, id)
    if (random.oneIn(3)) control(frames, random, id)
    id += random.oneIn(8) ? 4 : 2
  }
  if (random.oneIn(3)) control(frames, random, 1)
  return frames
}

/** What a server sends to a client that has opened CLIENT_STREAMS. */
export function serverSession(random: Random): Buffer[] {
  const frames = [settings(random)]
  if (!random.oneIn(8)) frames.push(ACK)
  for (const id of CLIENT_STREAMS) {
    if (random.oneIn(5)) continue
    answer(frames, random, id)
    if (random.oneIn(3)) control(frames, random, id)
  }
  if (random.oneIn(6)) frames.push(buildNumbers(h2.GOAWAY, 0, random.pick(LAST_STREAMS), random.below(14)))
  if (random.oneIn(3)) control(frames, random, 1)
  return frames
}

function request(frames: Buffer[], random: Random, id: number): void {
  const hasBody = random.oneIn(2)
  const size = hasBody ? sizeOf(random) : 0
  const parts = [hasBody ? POST : random.oneIn(6) ? HEAD : GET, random.pick(REQUEST_REST), random.pick(AUTHORITIES)]
  for (let n = random.below(4); n > 0; n--) parts.push(random.pick(FIELDS))
  if (hasBody && random.oneIn(2)) parts.push(literal('content-length', String(size)))
  head(frames, random, id, join(parts), !hasBody)
  if (hasBody) body(frames, random, id, size)
}

function answer(frames: Buffer[], random: Random, id: number): void {
  if (random.oneIn(8)) head(frames, random, id, random.pick(INTERIM), false)
  if (random.oneIn(6)) {
    head(frames, random, id, random.pick(BODYLESS), true)
    return
  }
  const size = sizeOf(random)
  const end = size === 0 && random.oneIn(2)
  const parts = [random.pick(STATUSES)]
  for (let n = random.below(4); n > 0; n--) parts.push(random.pick(FIELDS))
  if (random.oneIn(2)) parts.push(literal('content-length', String(size)))
  head(frames, random, id, join(parts), end)
  if (!end) body(frames, random, id, size)
}

/** HEADERS, now and then padded, with a priority, or split. */
function head(frames: Buffer[], random: Random, id: number, block: Buffer, end: boolean): void {
  const flags = end ? h2.END_STREAM : 0
  if (random.oneIn(6) && block.length > 2) {
    const cut = 1 + random.below(block.length - 1)
    frames.push(build(h2.HEADERS, flags, id, block.subarray(0, cut)))
    if (random.oneIn(3)) frames.push(build(h2.CONTINUATION, 0, id))
    frames.push(build(h2.CONTINUATION, h2.END_HEADERS, id, block.subarray(cut)))
  } else if (random.oneIn(8)) {
    const pad = random.below(20)
    const first = Buffer.from([pad, 0, 0, 0, 0, 15])
    frames.push(build(h2.HEADERS, flags | h2.END_HEADERS | h2.PADDED | h2.WITH_PRIORITY, id, first, block, pad))
  } else if (random.oneIn(12)) {
    frames.push(build(h2.HEADERS, flags | h2.END_HEADERS | h2.WITH_PRIORITY, id, PRIORITY_FIELDS, block))
  } else frames.push(build(h2.HEADERS, flags | h2.END_HEADERS, id, block))
}

function body(frames: Buffer[], random: Random, id: number, size: number): void {
  const trailers = random.oneIn(5)
  let left = size
  while (left > 0) {
    const piece = Math.min(FILL.length, random.oneIn(2) ? left : 1 + random.below(left))
    left -= piece
    const flags = left === 0 && !trailers ? h2.END_STREAM : 0
    const pad = random.oneIn(6) && piece < 10_000 ? 1 + random.below(30) : 0
    const bytes = FILL.subarray(0, piece)
    if (pad === 0) frames.push(build(h2.DATA, flags, id, bytes))
    else frames.push(build(h2.DATA, flags | h2.PADDED, id, Buffer.from([pad]), bytes, pad))
  }
  if (trailers) head(frames, random, id, random.pick(TRAILERS), true)
  else if (size === 0) frames.push(build(h2.DATA, h2.END_STREAM, id))
}

function sizeOf(random: Random): number {
  return random.oneIn(20) ? random.pick(LARGE) : random.pick(SIZES)
}

const WINDOWS = [0, 1, 100, 65_535, 1_000_000, 2 ** 31 - 1]
const TABLES = [0, 32, 100, 4_096, 65_536]
const FRAME_SIZES = [16_384, 20_000, 16_777_215]

function settings(random: Random): Buffer {
  const pairs: number[] = []
  if (random.oneIn(3)) pairs.push(h2.INITIAL_WINDOW_SIZE, random.pick(WINDOWS))
  if (random.oneIn(4)) pairs.push(h2.HEADER_TABLE_SIZE, random.pick(TABLES))
  if (random.oneIn(5)) pairs.push(h2.MAX_FRAME_SIZE, random.pick(FRAME_SIZES))
  if (random.oneIn(5)) pairs.push(h2.MAX_CONCURRENT_STREAMS, random.below(4))
  return buildSettings(pairs)
}

function control(frames: Buffer[], random: Random, id: number): void {
  frames.push(controlFrame(random, id))
}

function controlFrame(random: Random, id: number): Buffer {
  switch (random.below(8)) {
    case 0:
      return buildWindowUpdate(0, 1 + random.below(100_000))
    case 1:
      return buildWindowUpdate(id, 1 + random.below(100_000))
    case 2:
      return buildPing(random.below(1_000), random.below(2))
    case 3:
      return buildNumbers(h2.RST_STREAM, id, random.below(14), undefined)
    case 4:
      return settings(random)
    case 5:
      return build(h2.PRIORITY, 0, id, PRIORITY_FIELDS)
    case 6:
      return build(0x20 + random.below(200), random.below(256), id, FILL.subarray(0, 12))
    default:
      return buildWindowUpdate(id, random.pick(INCREMENTS))
  }
}

const INCREMENTS = [1, 50, 2 ** 31 - 1]
