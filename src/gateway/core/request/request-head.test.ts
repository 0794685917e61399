// Header attacks: which parts of a request reach upstream, and which heads are refused.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { readRequestHead, UPSTREAM_PSEUDO } from './request-head.ts'

const ADDRESS = '10.0.0.1'

/** The fields sent upstream for a list, without pseudo-header fields and the client's address. */
function sent(list: string[]): string[] {
  const { problem, fields } = readRequestHead(list, ADDRESS, false)
  assert.equal(problem, '')
  assert.deepEqual(fields.slice(-2), ['x-forwarded-for', ADDRESS])
  return fields.slice(UPSTREAM_PSEUDO, -2)
}

function problemOf(list: string[]): string {
  const { problem, fields } = readRequestHead(list, ADDRESS, false)
  // A refused head has no fields, so nothing can be sent upstream by accident.
  assert.equal(fields.length === 0, problem !== '')
  return problem
}

const HEAD = [':method', 'GET', ':path', '/api', ':authority', 'prod', ':scheme', 'https']

describe('request headers sent upstream', () => {
  const rows: { name: string; list: string[]; want: string[] }[] = [
    { name: 'no pseudo-header fields', list: HEAD, want: [] },
    {
      name: 'order and duplicates stay',
      list: ['b', '1', 'a', '2', 'b', '1', 'accept', 'x, y', 'user-agent', 'kubectl', 'content-type', 'q'],
      want: ['b', '1', 'a', '2', 'b', '1', 'accept', 'x, y', 'user-agent', 'kubectl', 'content-type', 'q'],
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
      list: ['authorization', 'Bearer x', 'authorization', 'Basic y', 'cookie', 'c'],
      want: ['cookie', 'c'],
    },
    {
      name: 'every identity goes, future ones too (cluster-proxy #329: Impersonate-Uid; X-Remote-*)',
      list: [
        ...['impersonate-user', 'admin', 'impersonate-group', 'system:masters', 'impersonate-uid', '0'],
        ...['impersonate-extra-scopes', 'x', 'impersonate-future', 'x', 'impersonate-', 'x'],
        ...['x-remote-user', 'admin', 'x-remote-group', 'system:masters', 'x-remote-extra-a', 'x', 'x-remote-uid', 'x'],
        ...['x-remotely', 'kept', 'impersonated', 'kept'],
      ],
      want: ['x-remotely', 'kept', 'impersonated', 'kept'],
    },
    {
      name: 'what Connection lists goes (CVE-2021-31999, CVE-2022-23652), trimmed and in any case',
      list: ['x-a', '1', 'connection', ' X-A ,\tx-B,, close', 'x-b', '2', 'x-c', '3', 'connection', 'X-C', 'x-d', '4'],
      want: ['x-d', '4'],
    },
    {
      name: 'Connection: Impersonate-User too',
      list: ['connection', 'Impersonate-User, Impersonate-Group, Authorization', 'impersonate-user', 'a', 'x', '1'],
      want: ['x', '1'],
    },
    {
      name: 'Connection cannot bring back te or a pseudo field',
      list: ['te', 'trailers', 'connection', 'te, :path'],
      want: ['te', 'trailers'],
    },
  ]
  for (const { name, list, want } of rows) it(name, () => assert.deepEqual(sent(list), want))

  it('adds the client’s address behind what is there; no connection field removes it', () => {
    const forwarded = ['x-forwarded-for', '6.6.6.6', 'a', '1', 'x-forwarded-for', '7.7.7.7']
    assert.deepEqual(readRequestHead(forwarded, ADDRESS, false).fields.slice(UPSTREAM_PSEUDO), [
      ...['x-forwarded-for', '6.6.6.6, 7.7.7.7, 10.0.0.1', 'a', '1'],
    ])
    assert.deepEqual(sent(['connection', 'x-forwarded-for', ...forwarded]), ['a', '1'])
  })

  it('leaves the audit id to the gateway, and takes a token out of the subprotocols', () => {
    const token = 'base64url.bearer.authorization.k8s.io.dG9r'
    assert.deepEqual(sent(['audit-id', 'q', 'a', '1']), ['a', '1'])
    assert.deepEqual(sent(['sec-websocket-protocol', `${token}, v5.channel.k8s.io`]), [
      ...['sec-websocket-protocol', 'v5.channel.k8s.io'],
    ])
  })

  const names = fc.constantFrom(
    ...['connection', 'impersonate-user', 'impersonate-x', 'x-remote-user', 'x-remotely', 'te', 'upgrade', 'trailer'],
    ...['x-a', 'x-b', 'x-c', 'accept', 'authorization', 'audit-id', 'keep-alive', 'proxy-authorization', 'user-agent'],
  )
  const values = fc.constantFrom('x-a', 'X-B, te', 'upgrade', 'a', ' impersonate-user ', '', 'trailers', 'accept')

  it('lets through what a rule written field by field lets through', () => {
    const never =
      /^(connection|keep-alive|proxy-.*|trailer|transfer-encoding|upgrade|host|http2-settings|authorization|audit-id|impersonate-.*|x-remote-.*)$/
    fc.assert(
      fc.property(fc.array(fc.tuple(names, values)), (fields) => {
        const listed = fields
          .filter(([name]) => name === 'connection')
          .flatMap(([, value]) => value.split(',').map((option) => option.trim().toLowerCase()))
        const expected = fields
          .filter(([name, value]) =>
            name === 'te' ? value === 'trailers' : !never.test(name) && !listed.includes(name),
          )
          .flat()
        assert.deepEqual(sent(fields.flat()), expected)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('what a request head says', () => {
  it('is read on the way', () => {
    const list = [':method', 'GET', ':path', '/api', ':scheme', 'https', ':authority', 'prod', 'user-agent', 'kubectl']
    list.push('authorization', 'Bearer a', 'authorization', 'Bearer b', 'audit-id', 'q', 'upgrade', 'websocket')
    const head = readRequestHead(list, ADDRESS, false)
    const { method, target, host, userAgent, auditId, authorization, upgrade, impersonates } = head
    assert.deepEqual(
      { method, target, host, userAgent, auditId, authorization, upgrade, impersonates },
      {
        method: 'GET',
        target: '/api',
        host: 'prod',
        userAgent: 'kubectl',
        auditId: 'q',
        authorization: 'Bearer a',
        upgrade: 'websocket',
        impersonates: false,
      },
    )
    assert.equal(readRequestHead(['host', 'prod'], ADDRESS, false).host, 'prod')
    assert.equal(readRequestHead(['impersonate-extra-x', 'a'], ADDRESS, false).impersonates, true)
  })
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
  for (const [name, list] of good) it(`not ${name}`, () => assert.equal(problemOf(list), ''))

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
      assert.notEqual(problemOf(list), '')
    })
  }

  it('never shows a value', () => {
    assert.ok(!problemOf(['authorization', 'Bearer s3cret\0']).includes('s3cret'))
  })
})
