// Which response fields reach the client, and reading and writing header fields.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  appendForwardedFor,
  clientResponseHeaders,
  decodeUtf8,
  encodeUtf8,
  headerValue,
  headerValues,
} from './hop-headers.ts'

describe('response headers sent to the client', () => {
  it('keep status, order and duplicates; lose what is hop by hop', () => {
    const list = [':status', '200', 'warning', '299 - "a"', 'connection', 'X-Hop, :status', 'warning', '299 - "b"']
    list.push(
      'x-hop',
      '1',
      'keep-alive',
      't',
      'transfer-encoding',
      'chunked',
      'trailer',
      'x',
      'upgrade',
      'h2c',
      'te',
      'x',
    )
    list.push('proxy-connection', 'x', 'content-length', '3', 'set-cookie', 'a', 'set-cookie', 'b')
    assert.deepEqual(clientResponseHeaders(list), [
      ...[':status', '200', 'warning', '299 - "a"', 'warning', '299 - "b"'],
      ...['content-length', '3', 'set-cookie', 'a', 'set-cookie', 'b'],
    ])
  })
})

describe('x-forwarded-for', () => {
  const rows: { name: string; list: string[]; want: string[] }[] = [
    { name: 'is added', list: ['a', '1'], want: ['a', '1', 'x-forwarded-for', '10.0.0.1'] },
    {
      name: 'is appended to',
      list: ['x-forwarded-for', '1.1.1.1', 'a', '1'],
      want: ['x-forwarded-for', '1.1.1.1, 10.0.0.1', 'a', '1'],
    },
    {
      name: 'becomes one line, which is all that the audit log reads',
      list: [
        'x-forwarded-for',
        '1.1.1.1',
        'a',
        '1',
        'x-forwarded-for',
        '2.2.2.2',
        'x-forwarded-for',
        '3.3.3.3',
        'b',
        '2',
      ],
      want: ['x-forwarded-for', '1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1', 'a', '1', 'b', '2'],
    },
  ]
  for (const { name, list, want } of rows) {
    it(name, () => {
      appendForwardedFor(list, '10.0.0.1')
      assert.deepEqual(list, want)
    })
  }
})

describe('reading', () => {
  it('finds the first and all values', () => {
    const list = ['a', '1', 'b', 'a', 'a', '2']
    assert.equal(headerValue(list, 'a'), '1')
    assert.deepEqual(headerValues(list, 'a'), ['1', '2'])
    assert.equal(headerValue(list, 'c'), undefined)
    assert.deepEqual(headerValues(list, 'c'), [])
    assert.equal(headerValue(list, '1'), undefined)
  })

  it('turns text into bytes and back', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => assert.equal(decodeUtf8(encodeUtf8(text)), text)))
    assert.equal(decodeUtf8('\xff'), undefined)
    assert.equal(encodeUtf8('ä'), '\xc3\xa4')
  })
})
