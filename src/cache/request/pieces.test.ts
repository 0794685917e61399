import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ItemReader, type PartReader, WholeParts } from '../core/bytes/part-reader.ts'
import { PIECE_BYTES, Pieces } from './pieces.ts'

/** All that comes out, in pieces, each copied as streams do. */
function cut(parts: PartReader): Buffer[] {
  const pieces = new Pieces()
  const found: Buffer[] = []
  for (;;) {
    const piece = pieces.next(parts)
    if (piece === undefined) return found
    found.push(Buffer.from(piece))
  }
}

function whole(parts: readonly Buffer[]): PartReader {
  const rest = parts.values()
  return new WholeParts(() => rest.next().value)
}

test('parts of any size come out whole and in order, in pieces that are not large', () => {
  const sizes = [
    1,
    0,
    10,
    PIECE_BYTES - 1,
    PIECE_BYTES,
    PIECE_BYTES + 1,
    5,
    3 * PIECE_BYTES + 7,
    2,
    PIECE_BYTES,
    PIECE_BYTES,
  ]
  const parts = sizes.map((size, at) => Buffer.alloc(size, at + 1))
  for (let from = 0; from < sizes.length; from++) {
    const pieces = cut(whole(parts.slice(from)))
    assert.ok(Buffer.concat(pieces).equals(Buffer.concat(parts.slice(from))))
    assert.ok(pieces.every(({ length }) => length < 2 * PIECE_BYTES))
  }
})

test('answers that are made at the same time are not mixed', () => {
  const [first, second] = [new Pieces(), new Pieces()]
  const copies = [first, second, first, second].map((pieces, at) =>
    Buffer.from(pieces.next(new WholeParts(() => Buffer.alloc(PIECE_BYTES / 2, at))) ?? []),
  )
  for (const [at, copy] of copies.entries()) assert.ok(copy.every((byte) => byte === at))
})

test('pieces end between two events, if these are short enough to be joined', () => {
  const [head, tail] = [Buffer.from('<'), Buffer.from('>')]
  for (const bytes of [10, 1000, PIECE_BYTES - 3, PIECE_BYTES - 2, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES]) {
    const events = new ItemReader({
      objects: Array.from({ length: 100 }, () => Buffer.alloc(bytes, 'x')),
      locate: (object: Buffer, place) => Object.assign(place, { memory: object, start: 0, end: object.length }),
      opening: Buffer.alloc(0),
      before: () => head,
      after: tail,
      closing: Buffer.alloc(0),
      mostOpen: PIECE_BYTES,
    })
    const pieces = cut(events)
    assert.equal(Buffer.concat(pieces).toString('latin1'), `<${'x'.repeat(bytes)}>`.repeat(100))
    assert.ok(pieces.every(({ length }) => length < 2 * PIECE_BYTES))
    if (bytes + 2 <= PIECE_BYTES) assert.ok(pieces.every((piece) => piece.at(-1) === tail[0] && piece[0] === head[0]))
  }
})
