import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storeError } from './s3-bucket.ts'

test('what a store says, and what can be done', () => {
  const body = (code: string, message: string): string =>
    `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`
  assert.deepEqual(storeError(404, body('NoSuchBucket', 'The specified bucket does not exist')), {
    why: 'the store answers 404, NoSuchBucket: The specified bucket does not exist',
    fix: 'create the bucket, or name another with --session-recording-s3-bucket',
  })
  assert.match(storeError(403, body('RequestTimeTooSkewed', 'x')).fix, /set the clock/)
  assert.match(storeError(307, '').fix, /redirects are not followed/)
  assert.deepEqual(storeError(503, '<html>'), { why: 'the store answers 503', fix: '' })
  assert.equal(storeError(500, body('a b', '\x1b]0;x\n')).why, 'the store answers 500, \\x1b]0;x\\n')
  assert.ok(storeError(500, body('A'.repeat(100_000), 'x'.repeat(100_000))).why.length < 400)
})
