// Header attacks: what upstream and client get to see.

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
  requestHeadersProblem,
  upstreamRequestHeaders,
} from './hop-headers.ts'

const HEAD = [':method', 'GET', ':path', '/api', ':authority', 'prod', ':scheme', 'https']

describe('request headers sent upstream', () => {
  const rows: { name: string; list: string[]; want: string[] }[] = [
    { name: 'no pseudo-header fields', list: HEAD, want: [] },
    {
      name: 'order and duplicates stay',
      list: ['b', '1', 'a', '2', 'b', '1', 'accept', 'x, y', 'user-agent', 'kubectl', 'audit-id', 'q'],
      want: ['b', '1', 'a', '2', 'b', '1', 'accept', 'x, y', 'user-agent', 'kubectl', 'audit-id', 'q'],
    },
    {
      name: 'everything hop by hop goes',
      list: [
        ...['keep-alive', 'x', 'proxy-connection', 'x', 'proxy-authenticate', 'x', 'proxy-authorization', 'x'],
        ...['trailer', 'x', 'transfer-encoding', 'chunked', 'upgrade', 'websocket', 'connection', 'Upgrade'],
        ...['http2-settings', 'x', 'host', 'x', 'a', '1'],
      ],
      want: ['a', '1'],
    },
    {
      name: 'content-length and expect are end to end',
      list: ['content-length', '3', 'expect', '100-continue'],
      want: ['content-length', '3', 'expect', '100-continue'],
    },
    { name: 'te: trailers stays', list: ['te', 'trailers'], want: ['te', 'trailers'] },
    { name: 'te is cut down to trailers', list: ['te', 'gzip;q=1, Trailers'], want: ['te', 'trailers'] },
    { name: 'other te goes', list: ['te', 'gzip'], want: [] },
    {
      name: 'credentials go',
      list: ['authorization', 'Bearer x', 'Authorization', 'Basic y', 'cookie', 'c'],
      want: ['cookie', 'c'],
    },
    {
      name: 'every identity goes, future ones too, in any case (cluster-proxy #329: Impersonate-Uid; X-Remote-*)',
      list: [
        ...['impersonate-user', 'admin', 'Impersonate-Group', 'system:masters', 'IMPERSONATE-UID', '0'],
        ...['impersonate-extra-scopes', 'x', 'impersonate-future', 'x', 'impersonate-', 'x'],
        ...['x-remote-user', 'admin', 'X-Remote-Group', 'system:masters', 'x-remote-extra-a', 'x', 'x-remote-uid', 'x'],
        ...['x-remotely', 'kept', 'impersonated', 'kept'],
      ],
      want: ['x-remotely', 'kept', 'impersonated', 'kept'],
    },
    {
      name: 'what Connection lists goes (CVE-2021-31999, CVE-2022-23652), trimmed and in any case',
      list: ['x-a', '1', 'connection', ' X-A ,\tx-B,, close', 'x-b', '2', 'x-c', '3', 'Connection', 'X-C', 'x-d', '4'],
      want: ['x-d', '4'],
    },
    {
      name: 'Connection: Impersonate-User is no exception',
      list: ['connection', 'Impersonate-User, Impersonate-Group, Authorization', 'impersonate-user', 'a', 'x', '1'],
      want: ['x', '1'],
    },
    {
      name: 'Connection cannot bring back te or a pseudo field',
      list: ['te', 'trailers', 'connection', 'te, :path'],
      want: ['te', 'trailers'],
    },
  ]
  for (const { name, list, want } of rows) it(name, () => assert.deepEqual(upstreamRequestHeaders(list), want))

  it('leaves what the gateway adds afterwards alone: the list names nothing any more', () => {
    const list = upstreamRequestHeaders([
      'connection',
      'impersonate-user, x-forwarded-for',
      'x-forwarded-for',
      '6.6.6.6',
    ])
    list.push('impersonate-user', 'jane')
    appendForwardedFor(list, '10.0.0.1')
    assert.deepEqual(upstreamRequestHeaders(list), ['x-forwarded-for', '10.0.0.1'])
    assert.deepEqual(list, ['impersonate-user', 'jane', 'x-forwarded-for', '10.0.0.1'])
  })

  it('lets nothing through that is not the client’s to say, whatever the list', () => {
    const names = fc.constantFrom(
      'connection',
      'Connection',
      'impersonate-user',
      'X-Remote-User',
      'te',
      'host',
      'upgrade',
      'x-a',
      'X-B',
      'authorization',
      ':path',
    )
    const values = fc.constantFrom('x-a', 'X-B, te', 'upgrade', 'a', ' impersonate-user ', '')
    fc.assert(
      fc.property(fc.array(fc.tuple(names, values)), (fields) => {
        const kept = upstreamRequestHeaders(fields.flat())
        const listed = fields
          .filter(([name]) => name.toLowerCase() === 'connection')
          .flatMap(([, value]) => value.split(',').map((option) => option.trim().toLowerCase()))
        for (let i = 0; i < kept.length; i += 2) {
          assert.ok(['x-a', 'x-b'].includes(kept[i] ?? ''), kept[i])
          assert.ok(!listed.includes(kept[i] ?? ''))
        }
        const expected = fields.filter(([name]) => /^x-[ab]$/i.test(name) && !listed.includes(name.toLowerCase()))
        assert.equal(kept.length, expected.length * 2)
      }),
    )
  })
})

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

describe('request heads that are refused', () => {
  const good: [string, string[]][] = [
    ['an ordinary one', [...HEAD, 'host', 'prod', 'accept', '*/*', 'x', 'caf\xe9\ttab', 'content-length', '0']],
    ['host and authority that differ in case', [':authority', 'Prod:6443', 'host', 'prod:6443']],
    ['an IPv6 host', [':authority', '[::1]:6443']],
    ['no host', [':authority', '', 'a', 'b']],
    ['chunked', ['transfer-encoding', 'Chunked']],
    ['duplicates elsewhere', ['a', '1', 'a', '1', 'x-forwarded-for', 'a', 'x-forwarded-for', 'b']],
    ['percent-encoded and raw bytes in the target', [':path', '/a%0d%0a?x=\xc3\xa4']],
  ]
  for (const [name, list] of good) it(`not ${name}`, () => assert.equal(requestHeadersProblem(list), ''))

  const bad: [string, string[]][] = [
    ['CR LF in a value', ['a', 'b\r\nimpersonate-user: admin']],
    ['a bare LF', ['a', 'b\nc']],
    ['a bare CR', ['a', 'b\rc']],
    ['NUL', ['a', 'b\0c']],
    ['another control character', ['a', 'b\x01c']],
    ['DEL', ['a', '\x7f']],
    ['more than a byte', ['a', '\u0130']],
    ['a line end in a pseudo field', [':path', '/a\r\nx: y']],
    ['a space in the target', [':path', '/a HTTP/1.1']],
    ['an empty target', [':path', '']],
    ['upper case, which filters would have to fold', ['Impersonate-User', 'a']],
    ['a space in a name', ['impersonate-user ', 'a']],
    ['a colon in a name', ['a:b', 'c']],
    ['an empty name', ['', 'c']],
    ['a name beyond ASCII', ['caf\xe9', 'c']],
    ['CR LF in a name', ['a\r\nb', 'c']],
    ['an unknown pseudo field', [':status', '200']],
    ['a pseudo field after others', ['a', 'b', ':path', '/']],
    ['two paths', [':path', '/a', ':path', '/b']],
    ['two authorities', [':authority', 'a', ':authority', 'a']],
    ['two hosts', ['host', 'a', 'host', 'a']],
    ['a host that contradicts the authority', [':authority', 'a', 'host', 'b']],
    ['userinfo in the host', ['host', 'a@b']],
    ['a path in the host', [':authority', 'a/b']],
    ['a space in the host', ['host', 'a b']],
    ['two content-lengths', ['content-length', '3', 'content-length', '4']],
    ['two equal content-lengths', ['content-length', '3', 'content-length', '3']],
    ['a list of content-lengths', ['content-length', '3, 3']],
    ['a signed content-length', ['content-length', '+3']],
    ['a negative content-length', ['content-length', '-3']],
    ['an empty content-length', ['content-length', '']],
    ['a hexadecimal content-length', ['content-length', '0x3']],
    ['content-length with transfer-encoding', ['content-length', '3', 'transfer-encoding', 'chunked']],
    ['another transfer-encoding', ['transfer-encoding', 'gzip, chunked']],
    ['a disguised transfer-encoding', ['transfer-encoding', 'xchunked']],
    ['two transfer-encodings', ['transfer-encoding', 'chunked', 'transfer-encoding', 'chunked']],
    ['a name without a value', ['a']],
  ]
  for (const [name, list] of bad) {
    it(name, () => {
      assert.notEqual(requestHeadersProblem(list), '')
    })
  }

  it('never shows a value', () => {
    assert.ok(!requestHeadersProblem(['authorization', 'Bearer s3cret\0']).includes('s3cret'))
  })
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
