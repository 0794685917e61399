// Answers of a pod with more fields than are permitted.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, request } from '../wire/http2.ts'

const PATH = '/api/v1/namespaces/default/pods/web-0/proxy/?hostile=fields'

export const attack: Attack = {
  reference: 'hostile answers through the proxy',
  does: 'asks a pod that answers with 4,500 fields',
  who: ['known', 'unknown'],
  answers: [
    '200',
    '401',
    '403',
    'RST_STREAM REFUSED_STREAM',
    '502',
    '504',
    '103',
    'RST_STREAM INTERNAL_ERROR',
    'RST_STREAM CANCEL',
    'RST_STREAM PROTOCOL_ERROR',
  ],
  run: (target, signal) =>
    attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 50, request(head(target, 'GET', PATH)))),
}
