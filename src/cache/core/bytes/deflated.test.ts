import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32, deflateRawSync, gunzipSync, constants as ZLIB } from 'node:zlib'
import fc from 'fast-check'
import { type Deflated, GZIP_HEAD, gzipTail, joinedCrc, storedBlocks } from './deflated.ts'

const LARGE = 200_000

function stored(plain: Buffer): Deflated {
  return { bytes: storedBlocks(plain), crc: crc32(plain), length: plain.length }
}

function deflated(plain: Buffer): Deflated {
  const bytes = deflateRawSync(plain, { level: 1, finishFlush: ZLIB.Z_SYNC_FLUSH })
  return { bytes, crc: crc32(plain), length: plain.length }
}

function fileOf(parts: readonly Deflated[]): Buffer {
  let crc = 0
  let length = 0
  for (const part of parts) {
    crc = joinedCrc(crc, part.crc, part.length)
    length += part.length
  }
  return Buffer.concat([GZIP_HEAD, ...parts.map(({ bytes }) => bytes), gzipTail(crc, length)])
}

test('parts that were compressed each for itself are one gzip file, in any order', () => {
  const part = fc.oneof(
    fc.uint8Array({ maxLength: 3000 }),
    fc.string({ maxLength: 300 }),
    fc.nat(LARGE).map((bytes) => new Uint8Array(bytes)),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(part, fc.boolean()), { maxLength: 8 }), (all) => {
      const plain = all.map(([bytes]) => Buffer.from(bytes))
      const file = fileOf(plain.map((bytes, at) => (all[at]?.[1] === true ? stored(bytes) : deflated(bytes))))
      assert.ok(gunzipSync(file).equals(Buffer.concat(plain)))
    }),
  )
})

test('the checksum of parts of any length is that of all of them', () => {
  const second = Buffer.alloc(LARGE, 'x')
  for (const bytes of [0, 1, 2, 3, 255, 256, 65_535, 65_536, LARGE]) {
    const part = second.subarray(0, bytes)
    const whole = crc32(Buffer.concat([Buffer.from('first'), part]))
    assert.equal(joinedCrc(crc32('first'), crc32(part), bytes), whole, String(bytes))
  }
})

test('the checksum goes on behind more bytes than a 32-bit number counts', () => {
  const GIB = 2 ** 30
  // Four times a GiB of zeros, each joined, is 4 GiB of them.
  let one = crc32(Buffer.alloc(1024))
  for (let bytes = 1024; bytes < GIB; bytes *= 2) one = joinedCrc(one, one, bytes)
  const four = [1, 2, 3].reduce((crc) => joinedCrc(crc, one, GIB), one)
  assert.equal(joinedCrc(0, four, 4 * GIB), four)
  assert.equal(joinedCrc(one, joinedCrc(joinedCrc(one, one, GIB), one, GIB), 3 * GIB), four)
  assert.equal(gzipTail(1, 4 * GIB + 7).readUInt32LE(6), 7)
})
