// The queue against one long string, and what many small pieces cost.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ChunkQueue } from './chunk-queue.ts'

test('gives the bytes back in order, however they were cut', () => {
  const push = fc.integer({ min: 0, max: 3000 }).map((size) => ({ push: size, shift: 0 }))
  const shift = fc.integer({ min: 1, max: 5000 }).map((size) => ({ push: 0, shift: size }))
  fc.assert(
    fc.property(fc.array(fc.oneof(push, shift), { maxLength: 300 }), (steps) => {
      const queue = new ChunkQueue()
      let waiting = ''
      let next = 0
      for (const step of steps) {
        const text = Array.from({ length: step.push }, () => String.fromCharCode(next++ & 0xff)).join('')
        queue.push(Buffer.from(text, 'latin1'))
        waiting += text
        if (step.shift > 0) {
          const piece = queue.shift(step.shift).toString('latin1')
          assert.equal(piece, waiting.slice(0, piece.length))
          assert.equal(piece.length === 0, waiting === '')
          waiting = waiting.slice(piece.length)
        }
        assert.equal(queue.bytes, waiting.length)
      }
      assert.equal(Buffer.concat([...queue.pieces()]).toString('latin1'), waiting)
    }),
  )
})

test('single bytes cost hardly more than their sum', () => {
  const queue = new ChunkQueue()
  for (let i = 0; i < 100_000; i++) queue.push(Buffer.from([i & 0xff]))
  assert.equal(queue.bytes, 100_000)
  assert.ok(queue.pieces().length <= 25)
})

test('what was taken is not changed by what comes', () => {
  const queue = new ChunkQueue()
  queue.push(Buffer.from('abc'))
  const taken = queue.shift(2)
  queue.push(Buffer.from('def'))
  const rest = queue.shift(100)
  queue.push(Buffer.from('xyz'))
  assert.deepEqual([String(taken), String(rest), String(queue.shift(100))], ['ab', 'cdef', 'xyz'])
})
