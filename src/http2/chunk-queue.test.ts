// The queue compared with one long string, and the cost of many small pieces.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ChunkQueue } from './chunk-queue.ts'

function taken(queue: ChunkQueue, size: number): string {
  const parts: Buffer[] = []
  queue.moveTo({ append: (bytes) => parts.push(Buffer.from(bytes)) }, size)
  return Buffer.concat(parts).toString('latin1')
}

test('returns the bytes in order, however they were chunked', () => {
  const push = fc.integer({ min: 0, max: 3000 }).map((size) => ({ push: size, shift: 0 }))
  const shift = fc.integer({ min: 1, max: 5000 }).map((size) => ({ push: 0, shift: size }))
  fc.assert(
    fc.property(fc.array(fc.oneof(push, shift), { maxLength: 300 }), (steps) => {
      const queue = new ChunkQueue()
      let waiting = ''
      let next = 0
      for (const step of steps) {
        const text = Array.from({ length: step.push }, () => String.fromCharCode(next++ & 0xff)).join('')
        const chunk = Buffer.from(text, 'latin1')
        const expected = queue.memory + queue.growth(chunk.length)
        queue.push(chunk)
        assert.equal(queue.memory, expected)
        chunk.fill(0)
        waiting += text
        if (step.shift > 0) {
          assert.equal(taken(queue, step.shift), waiting.slice(0, step.shift))
          waiting = waiting.slice(step.shift)
        }
        assert.equal(queue.bytes, waiting.length)
        assert.ok(queue.memory >= queue.bytes)
      }
      assert.equal(Buffer.concat([...queue.pieces()]).toString('latin1'), waiting)
    }),
  )
})

test('single bytes cost hardly more than their sum', () => {
  const queue = new ChunkQueue()
  for (let i = 0; i < 100_000; i++) queue.push(Buffer.from([i & 0xff]))
  assert.equal(queue.bytes, 100_000)
  assert.ok(queue.pieces().length <= 5)
})

test('is emptied and filled again', () => {
  const queue = new ChunkQueue()
  queue.push(Buffer.from('abc'))
  assert.equal(taken(queue, 2), 'ab')
  queue.push(Buffer.from('def'))
  assert.equal(taken(queue, 100), 'cdef')
  queue.push(Buffer.from('xyz'))
  assert.equal(taken(queue, 100), 'xyz')
})
