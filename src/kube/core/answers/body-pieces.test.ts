import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { BodyPieces } from './body-pieces.ts'

test('what was added is what is taken, once', () => {
  const chunk = fc.oneof(fc.uint8Array({ maxLength: 5 }), fc.uint8Array({ maxLength: 3000 }))
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 60 }), (chunks) => {
      const body = new BodyPieces()
      for (const bytes of chunks) {
        const shared = Buffer.from(bytes)
        body.add(shared)
        shared.fill(0)
      }
      assert.deepEqual(Buffer.concat(body.take()), Buffer.concat(chunks))
      assert.deepEqual(body.take(), [])
    }),
  )
})

test('a body that comes byte by byte is in few pieces, and a small one takes no more than it has', () => {
  const body = new BodyPieces()
  body.add(Buffer.from('{}'))
  const [only] = body.take()
  assert.equal(only?.length, 2)
  for (let i = 0; i < 10_000; i++) body.add(Buffer.of(i % 256))
  const pieces = body.take()
  assert.ok(pieces.length <= 11, `${pieces.length}`)
})
