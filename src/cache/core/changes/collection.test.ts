import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptWarnings, MAX_WARNING_BYTES } from './collection.ts'

const DEPRECATED = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'

test('warnings as received, each once', () => {
  assert.deepEqual(keptWarnings([DEPRECATED, '299 - "b"', DEPRECATED]), [DEPRECATED, '299 - "b"'])
})

test('neither what a header field cannot have, nor any amount', () => {
  assert.deepEqual(keptWarnings(['299 - "a\r\nx: y"', '299 - "\u00fc"', '', '299 - "b"']), ['299 - "b"'])
  assert.deepEqual(keptWarnings(['a'.repeat(MAX_WARNING_BYTES), 'b']), ['a'.repeat(MAX_WARNING_BYTES)])
  assert.deepEqual(keptWarnings(['a'.repeat(MAX_WARNING_BYTES + 1)]), [])
})
