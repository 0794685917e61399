import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { failure } from '../../kube/api/status.ts'
import { jsonAnswer, objectAnswer, statusAnswer, textAnswer } from './answer.ts'

test('JSON ends in a newline, and is indented when asked for', () => {
  assert.equal(jsonAnswer(200, { a: 1 }).body.toString(), '{"a":1}\n')
  assert.equal(objectAnswer(200, { a: 1 }, { format: 'json', pretty: true }).body.toString(), '{\n  "a": 1\n}\n')
})

test('values that YAML 1.1 would misread are quoted, and there are no aliases', () => {
  const shared = { on: 'yes' }
  const value = { a: shared, b: shared, time: '2026-01-01T00:00:00Z', octal: '0777', sexagesimal: '1:30', no: 'n' }
  const { body, headers } = objectAnswer(200, value, { format: 'yaml', pretty: false })
  assert.deepEqual(headers.slice(0, 2), ['content-type', 'application/yaml'])
  const text = body.toString()
  assert.doesNotMatch(text, /[&*]a1/)
  assert.deepEqual(parse(text, { version: '1.1' }), value)
})

test('a Status sets the response code, and Retry-After where it has one', () => {
  const refused = statusAnswer(failure('TooManyRequests', 'later', { retryAfterSeconds: 3 }))
  assert.equal(refused.code, 429)
  assert.deepEqual(refused.headers.slice(-2), ['retry-after', '3'])
  assert.equal(statusAnswer(failure('NotFound', 'no')).headers.includes('retry-after'), false)
  assert.equal(statusAnswer({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' }).code, 200)
})

test('plain text is not to be guessed at', () => {
  const { headers, body } = textAnswer(404, '404 page not found\n')
  assert.equal(body.toString(), '404 page not found\n')
  assert.ok(headers.includes('nosniff'))
})
