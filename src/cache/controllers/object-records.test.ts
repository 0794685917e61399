import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Place, SEGMENT_BYTES, Segments } from './object-records.ts'

function fill(segments: Segments, count: number, size: number): Place[] {
  return Array.from({ length: count }, (_, at) => segments.put(Buffer.alloc(size, at)))
}

test('what was put is there, in memory of whole segments', () => {
  const segments = new Segments()
  const places = fill(segments, 300, 10_000)
  for (const [at, place] of places.entries()) assert.deepEqual(segments.read(place), Buffer.alloc(10_000, at))
  assert.ok(segments.bytes >= 3_000_000 && segments.bytes < 3_000_000 + 2 * SEGMENT_BYTES)
  assert.deepEqual(
    segments.takeNews().segments.map(({ id }) => id),
    segments.all.map(({ id }) => id),
  )
  assert.deepEqual(segments.takeNews(), { segments: [], dropped: [] })
})

test('a segment in which nothing is left is given up, but not the one that is written', () => {
  const segments = new Segments()
  const places = fill(segments, 300, 10_000)
  const before = segments.all.length
  for (const place of places) segments.release(place)
  assert.equal(segments.all.length, 1)
  assert.equal(segments.takeNews().dropped.length, before - 1)
})

test('an object that is larger than a segment has one of its own', () => {
  const segments = new Segments()
  const small = segments.put(Buffer.from('small'))
  const large = segments.put(Buffer.alloc(3 * SEGMENT_BYTES, 7))
  const next = segments.put(Buffer.from('next'))
  assert.equal(next.segment, small.segment)
  assert.equal(segments.read(large).length, 3 * SEGMENT_BYTES)
  segments.release(large)
  assert.deepEqual(segments.takeNews().dropped, [large.segment])
  assert.equal(segments.read(next).toString(), 'next')
})

test('segments that are half unused are to be rewritten', () => {
  const segments = new Segments()
  const places = fill(segments, 300, 10_000)
  assert.equal(segments.sparse().size, 0)
  for (const [at, place] of places.entries()) if (at % 3 > 0) segments.release(place)
  assert.ok(segments.sparse().size >= segments.all.length - 1)
})
