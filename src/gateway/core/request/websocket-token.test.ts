// Tokens in Authorization and in WebSocket subprotocols (bearertoken_test.go, protocol_test.go of apiserver).

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MAX_TOKEN_FIELD_LENGTH, readBearerToken, withoutWebSocketToken } from './websocket-token.ts'

const PREFIX = 'base64url.bearer.authorization.k8s.io.'
const UPGRADE = ['connection', 'Upgrade', 'upgrade', 'websocket']

function encoded(token: string): string {
  return PREFIX + Buffer.from(token).toString('base64url')
}

function found(token: string, from: 'header' | 'websocket'): unknown {
  return { kind: 'token', token, from }
}

function described(list: string[]): unknown {
  const result = readBearerToken(list)
  return result.kind === 'invalid' ? result.message : result
}

const NONE = { kind: 'none' }

describe('bearer token in Authorization', () => {
  const rows: [string, unknown][] = [
    ['Bearer abc', found('abc', 'header')],
    ['bearer abc', found('abc', 'header')],
    ['BEARER abc', found('abc', 'header')],
    ['  Bearer abc \t', found('abc', 'header')],
    ['Bearer abc def ghi', found('abc', 'header')],
    ['Bearer a\xc3\xa9', found('aé', 'header')],
    ['Bearer \xc3\xa0', found('à', 'header')],
    ['Bearer abc\xc2\xa0', found('abc', 'header')],
    ['Bearer  abc', NONE],
    ['Bearer', NONE],
    ['Bearer ', NONE],
    ['Bearer\tabc', NONE],
    ['', NONE],
    ['Basic dXNlcjpwYXNz', NONE],
    ['Bearerabc', NONE],
    ['Negotiate abc', NONE],
    ['Basic \xff', NONE],
    ['Bearer \xff', 'the bearer token is not UTF-8'],
  ]
  for (const [value, want] of rows) {
    it(JSON.stringify(value), () => assert.deepEqual(described(['authorization', value]), want))
  }
  it('no header', () => assert.deepEqual(described(['user-agent', 'kubectl']), NONE))
  it('is read up to its limit', () => {
    const token = (length: number): string => `Bearer ${'a'.repeat(length - 7)}`
    assert.equal(readBearerToken(['authorization', token(MAX_TOKEN_FIELD_LENGTH)]).kind, 'token')
    assert.equal(readBearerToken(['authorization', token(MAX_TOKEN_FIELD_LENGTH + 1)]).kind, 'invalid')
  })
  it('takes the first of two', () => {
    assert.deepEqual(described(['authorization', 'Bearer a', 'authorization', 'Bearer b']), found('a', 'header'))
    assert.deepEqual(described(['authorization', 'Basic a', 'authorization', 'Bearer b']), NONE)
  })
})

describe('bearer token as subprotocol', () => {
  const rows: { name: string; protocols: string[]; want: unknown; upgrade?: string[] }[] = [
    { name: 'with another', protocols: [`v5.channel.k8s.io, ${encoded('tok')}`], want: found('tok', 'websocket') },
    { name: 'on another line', protocols: [encoded('tok'), 'v5'], want: found('tok', 'websocket') },
    { name: 'UTF-8', protocols: [`${encoded('ü')},v5`], want: found('ü', 'websocket') },
    { name: 'none', protocols: ['v5.channel.k8s.io'], want: NONE },
    { name: 'empty token', protocols: [`${PREFIX},v5`], want: NONE },
    { name: 'alone', protocols: [encoded('tok')], want: 'missing additional subprotocol' },
    {
      name: 'twice',
      protocols: [`${encoded('a')},v5`, encoded('b')],
      want: 'multiple base64.bearer.authorization tokens specified',
    },
    { name: 'padding', protocols: [`${PREFIX}dG9=,v5`], want: 'invalid base64.bearer.authorization token encoding' },
    {
      name: 'standard alphabet',
      protocols: [`${PREFIX}a+/b,v5`],
      want: 'invalid base64.bearer.authorization token encoding',
    },
    {
      name: 'impossible length',
      protocols: [`${PREFIX}abcde,v5`],
      want: 'invalid base64.bearer.authorization token encoding',
    },
    { name: 'not UTF-8', protocols: [`${PREFIX}_w,v5`], want: 'invalid base64.bearer.authorization token encoding' },
    { name: 'no upgrade', protocols: [`${encoded('tok')},v5`], want: NONE, upgrade: [] },
    {
      name: 'SPDY',
      protocols: [`${encoded('tok')},v5`],
      want: NONE,
      upgrade: ['connection', 'upgrade', 'upgrade', 'SPDY/3.1'],
    },
    {
      name: 'any case, and a list in Connection',
      protocols: [`${encoded('tok')},v5`],
      want: found('tok', 'websocket'),
      upgrade: ['connection', 'keep-alive', 'connection', 'x, UPGRADE', 'upgrade', 'WebSocket'],
    },
  ]
  for (const { name, protocols, want, upgrade } of rows) {
    it(name, () => {
      const lines = protocols.flatMap((line) => ['sec-websocket-protocol', line])
      assert.deepEqual(described([...(upgrade ?? UPGRADE), ...lines]), want)
    })
  }

  it('is asked after Authorization', () => {
    const protocols = ['sec-websocket-protocol', `${encoded('ws')},v5`]
    assert.deepEqual(described([...UPGRADE, ...protocols, 'authorization', 'Bearer h']), found('h', 'header'))
    assert.deepEqual(described([...UPGRADE, ...protocols, 'authorization', 'Basic h']), found('ws', 'websocket'))
  })
})

describe('what is forwarded', () => {
  it('is the same list when there is no token', () => {
    const list = ['sec-websocket-protocol', 'v5.channel.k8s.io , v4.channel.k8s.io', 'a', 'b']
    assert.equal(withoutWebSocketToken(list), list)
  })
  it('has no token, in whichever line it was', () => {
    const list = ['a', 'b', 'sec-websocket-protocol', `v5, ${encoded('t')}`, 'c', 'd', 'sec-websocket-protocol', 'v4']
    assert.deepEqual(withoutWebSocketToken(list), ['a', 'b', 'sec-websocket-protocol', 'v5,v4', 'c', 'd'])
  })
  it('has no subprotocol line when nothing but tokens was there', () => {
    const list = ['sec-websocket-protocol', encoded('t'), 'sec-websocket-protocol', encoded('u'), 'c', 'd']
    assert.deepEqual(withoutWebSocketToken(list), ['c', 'd'])
  })
})
