// Fields that would be others, or requests of their own, behind a proxy that takes them over as they are.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, inTurn, request, SMALL_PATH } from '../wire/http2.ts'

const FIELDS: readonly (readonly string[])[] = [
  ['x-a', 'v\r\nx-remote-user: admin'],
  ['x-a\r\nx-remote-user', 'admin'],
  ['content-length', '4294967296'],
  ['content-length', '1', 'content-length', '2'],
  ['content-length', '+1'],
  ['transfer-encoding', 'chunked'],
  ['connection', 'x-remote-user'],
  ['host', 'other.example.com'],
  [':authority', 'other.example.com'],
  ['', 'nameless'],
  ['x-a', 'v\0'],
]

export const attack: Attack = {
  reference: 'CVE-2021-40346, CVE-2023-25725, CVE-2019-18801',
  does: 'sends heads that mean something else over HTTP/1.1',
  who: ['known', 'unknown'],
  answers: [
    '400',
    '401',
    '403',
    '421',
    'RST_STREAM PROTOCOL_ERROR',
    'RST_STREAM REFUSED_STREAM',
    'GOAWAY COMPRESSION_ERROR',
  ],
  must: ['400', 'RST_STREAM PROTOCOL_ERROR', 'GOAWAY ENHANCE_YOUR_CALM'],
  run: (target, signal) => {
    const requests = inTurn(FIELDS.map((fields) => request(head(target, 'GET', SMALL_PATH, ...fields))))
    return attackHttp2(target, signal, { connections: 4 }, (connection) => closedLoop(connection, 20, requests))
  },
}
