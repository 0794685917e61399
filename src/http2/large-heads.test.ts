// Heads of many frames: their memory comes from pools and returns there however they end, nothing is allocated per head, and what a
// thread's
// connections have received of them so far is kept apart.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { ClientSide, END, frameOf, GET, OK, ServerSide, settings } from '../../test/harness/frames/http2-sides.ts'
import '../../test/harness/property-seed.ts'
import type { HeaderList } from '../kit/api/stream.ts'
import * as frame from './frames.ts'
import { encodeBound, HpackEncoder } from './hpack/encoder.ts'
import { piecesInUse } from './slabs.ts'

const KIB = 1024

function largeList(fields: number, fill = 'y'): HeaderList {
  return [...GET, ...Array.from({ length: fields }, (_, n) => [`x-${n}`, fill.repeat(4000)]).flat()]
}

function blockOf(list: HeaderList): Buffer {
  const encoder = new HpackEncoder()
  encoder.setMaxTableBytes(0)
  const out = Buffer.alloc(encodeBound(list))
  return out.subarray(0, encoder.encode(list, out, 0))
}

/** HEADERS and CONTINUATION. @param whole false: END_HEADERS is missing */
function framesOf(id: number, list: HeaderList, frameBytes = 16_384, whole = true): Buffer {
  const block = blockOf(list)
  const frames: Buffer[] = []
  for (let at = 0; at < block.length; at += frameBytes) {
    const isLast = whole && at + frameBytes >= block.length
    const flags = (isLast ? frame.FLAG_END_HEADERS : 0) | (at === 0 ? END : 0)
    frames.push(frameOf(at === 0 ? frame.HEADERS : frame.CONTINUATION, flags, id, block.subarray(at, at + frameBytes)))
  }
  return Buffer.concat(frames)
}

function receive(side: ServerSide, bytes: Buffer, chunkBytes: number): void {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    // Like a read: the memory is overwritten afterwards.
    const chunk = Buffer.from(bytes.subarray(at, at + chunkBytes))
    side.connection.receive(chunk, side.now)
    chunk.fill(0)
  }
}

/** Bytes allocated as Buffers while `work` runs. */
function allocated(t: TestContext, work: () => void): number {
  let bytes = 0
  const { from, concat } = Buffer
  const counted = (size: number): void => {
    bytes += size
  }
  for (const method of ['allocUnsafe', 'allocUnsafeSlow', 'alloc'] as const) {
    const original = Buffer[method].bind(Buffer)
    t.mock.method(Buffer, method, (size: number) => {
      counted(size)
      return original(size)
    })
  }
  t.mock.method(Buffer, 'from', (...args: Parameters<typeof from>) => {
    const made = Reflect.apply(from, Buffer, args) as Buffer
    counted(made.length)
    return made
  })
  t.mock.method(Buffer, 'concat', (...args: Parameters<typeof concat>) => {
    const made = concat.apply(Buffer, args)
    counted(made.length)
    return made
  })
  work()
  t.mock.restoreAll()
  return bytes
}

describe('the memory of large heads', () => {
  const list = largeList(50)

  it('is not allocated for each that is received', (t) => {
    const side = new ServerSide()
    const heads = Array.from({ length: 20 }, (_, n) => framesOf(2 * n + 1, list))
    const read = (bytes: Buffer): void => {
      // Frames span the pieces.
      for (let at = 0; at < bytes.length; at += 10_000) side.connection.receive(bytes.subarray(at, at + 10_000), 0)
    }
    read(heads[0] ?? Buffer.alloc(0))
    const bytes = allocated(t, () => heads.slice(1).forEach(read))
    assert.equal(side.requests.length, heads.length)
    assert.ok(bytes < 200 * KIB, `${bytes} bytes for ${heads.length - 1} heads of 200 KB`)
  })

  for (const frameBytes of [16_384, 1024 * KIB]) {
    it(`is not allocated for each that is sent, in frames of ${frameBytes} bytes`, (t) => {
      const side = new ClientSide()
      side.send(settings(frame.MAX_FRAME_SIZE, frameBytes))
      const parts: Buffer[] = []
      const open = (): void => {
        side.open(list)
        side.connection.takeOutput(0, parts)
        side.connection.releaseOutput()
      }
      open()
      const bytes = allocated(t, () => {
        for (let n = 0; n < 20; n++) open()
      })
      assert.equal(side.connection.openStreams, 21)
      assert.ok(bytes < 200 * KIB, `${bytes} bytes for 20 heads of 200 KB`)
    })
  }

  it('goes back to the pools, however they end', () => {
    const before = piecesInUse()
    const whole = framesOf(1, list)
    const part = whole.subarray(0, 150_000)
    const ends: ((side: ServerSide) => void)[] = [
      (side) => side.connection.destroy(frame.NO_ERROR),
      (side) => side.connection.onSocketClosed(),
      (side) => side.connection.abuse('slowRead'),
      (side) => side.connection.tick(60_000),
      // The rest of the frame, followed by a frame other than CONTINUATION.
      (side) => side.send(whole.subarray(150_000, 163_930), frameOf(frame.PING, 0, 0, Buffer.alloc(8))),
      // Not HPACK.
      (side) => side.send(Buffer.alloc(13_930, 0xff), frameOf(frame.CONTINUATION, frame.FLAG_END_HEADERS, 1)),
      (side) => {
        side.send(whole.subarray(150_000))
        assert.equal(side.requests.length, 1)
        side.connection.destroy(frame.NO_ERROR)
      },
    ]
    for (const [n, end] of ends.entries()) {
      const side = new ServerSide()
      receive(side, part, 16 * KIB)
      assert.ok(piecesInUse().slabs > before.slabs, 'the block')
      assert.ok(piecesInUse().frames > before.frames, 'the frame')
      end(side)
      side.take()
      assert.deepEqual(side.closed === undefined, false, `${n} ended it`)
      assert.deepEqual(piecesInUse(), before, `${n}`)
    }
  })

  it('is not kept until the end of an answer that is too large', () => {
    const before = piecesInUse()
    const side = new ClientSide()
    const received = side.open()
    side.send(frameOf(frame.HEADERS, 0, 1, side.block(OK)))
    const piece = side.block(Array.from({ length: 1000 }, () => ['x-a', 'y']).flat())
    for (let n = 0; n < 1000; n++) {
      side.send(frameOf(frame.CONTINUATION, 0, 1, piece))
      assert.ok(piecesInUse().slabs - before.slabs < 12, `${n} frames`)
    }
    side.send(frameOf(frame.CONTINUATION, frame.FLAG_END_HEADERS, 1, side.block(['x-in-table', 'yes'])))
    assert.deepEqual([received.reset, side.counters.headerListTooLarge], ['protocol', 1])
    const next = side.open()
    side.send(side.head(3, [...OK, 'x-in-table', 'yes'], END))
    assert.deepEqual([next.heads, side.closed], [[[...OK, 'x-in-table', 'yes']], undefined])
    side.connection.destroy(frame.NO_ERROR)
    side.take()
    assert.deepEqual(piecesInUse(), before)
  })

  it('is that of one connection, however the pieces of several are mixed', () => {
    const one = fc.record({
      fields: fc.integer({ min: 1, max: 20 }),
      frameBytes: fc.integer({ min: 1000, max: 16_384 }),
      chunkBytes: fc.integer({ min: 1000, max: 40_000 }),
    })
    fc.assert(
      fc.property(
        fc.array(one, { minLength: 2, maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 50 }),
        (all, order) => {
          const before = piecesInUse()
          const sides = all.map(({ fields, frameBytes, chunkBytes }, n) => {
            const side = new ServerSide()
            const sent = largeList(fields, 'abcd'[n])
            const bytes = framesOf(1, sent, frameBytes)
            const chunks: Buffer[] = []
            for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes))
            return { side, sent, chunks }
          })
          const next = ({ side, chunks }: (typeof sides)[number]): void => {
            const chunk = chunks.shift()
            if (chunk !== undefined) receive(side, chunk, chunk.length)
          }
          for (const which of order) next(sides[which % sides.length] ?? assert.fail())
          for (const each of sides) while (each.chunks.length > 0) next(each)
          for (const { side, sent } of sides) {
            const { stream, head } = side.request(0)
            assert.deepEqual(head, sent)
            stream.headers(OK, true)
            side.take()
            side.connection.destroy(frame.NO_ERROR)
            side.take()
          }
          assert.deepEqual(piecesInUse(), before)
        },
      ),
      { numRuns: 50 },
    )
  })
})
